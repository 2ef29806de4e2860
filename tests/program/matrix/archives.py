"""Packing, compressing and carrying away: tar, rsync, cpio, zip and the compressors."""

from __future__ import annotations

from .case import Case

#: Of one that works through tens of MB in `make soak`: three places at once share the processors.
COMPRESS_S = 240

COMPRESS = """
cp "$S/text" a; cp "$S/random" b
{tool} -k a b; cp a{ending} c{ending}; {tool} -d -f c{ending}; cmp c a; {tool} -dc b{ending} | cmp - b
{tool} -t a{ending} b{ending}
{tool} -c < a > d{ending}; {tool} -dc < d{ending} | md5sum; rm a; {tool} -d a{ending}; cmp a c
touch -d @1600000000 c; rm -f c{ending}; {tool} -1 {remove} c; test ! -e c
"""


def compressor(tool: str, ending: str, remove: str = "") -> Case:
    """All of them take the same options."""
    return Case(
        name=tool,
        job="compress, decompress, test, standard streams",
        needs=(tool,),
        script=COMPRESS.format(tool=f"{tool} -q", ending=ending, remove=remove),
        volatile=(f"*{ending}",),
        timeout_s=COMPRESS_S,
    )


CASES = [
    Case(
        name="tar",
        job="create from, extract into, list, append, compare, -z",
        needs=("tar",),
        script="""
cp -r "$S/tree" t; find t -exec touch -h -d @1600000000 {} +
tar -cf a.tar --sort=name --owner=0 --group=0 t; tar -tf a.tar | md5sum; mkdir x; tar -xf a.tar -C x
diff -r t x/t; tar -df a.tar
tar -rf a.tar --owner=0 --group=0 -C "$S" tree/run.sh; tar -tf a.tar | wc -l; tar -czf b.tgz t
tar -xzf b.tgz -C x; tar -cf "$T/out.tar" t; tar -xOf "$T/out.tar" t/run.sh; tar -c t | tar -t | wc -l
tar -x -C "$T" < a.tar; diff -r t "$T/t"
tar -cf c.tar --sparse --owner=0 --group=0 -C "$S" sparse; mkdir y; tar -xf c.tar -C y; cmp y/sparse "$S/sparse"
tar -cf d.tar -h -C t pointer; tar -uf d.tar -C t run.sh; stat -c %a x/t/run.sh; stat -c %Y x/t/run.sh
tar --delete -f a.tar t/run.sh; tar -cf e.tar -g snap t; tar -tf e.tar | wc -l
""",
        volatile=("*.tar", "*.tgz", "snap"),
    ),
    Case(
        name="tar-remove",
        job="--remove-files, --keep-newer-files, --overwrite",
        needs=("tar",),
        script="""
cp -r "$S/tree" t; tar -cf a.tar t; tar -xf a.tar --overwrite; tar -xf a.tar --keep-newer-files 2>/dev/null
tar -xf a.tar --unlink-first t/run.sh t/pointer; diff -r t "$S/tree"
find t -type f | sort | tar -cf b.tar --remove-files -T -; find t -type f; tar -xf b.tar; diff -r t "$S/tree"
""",
        volatile=("*.tar",),
    ),
    Case(
        name="rsync",
        job="in, out, within; -a, delta, --inplace, --append, --delete, --checksum",
        needs=("rsync",),
        script="""
rsync -a "$S/tree/" t/; diff -r t "$S/tree"; rsync -a --stats t/ u/ | grep 'regular files transferred'
rsync -a --stats t/ u/ | grep 'regular files transferred'
cp "$S/random" a; rsync -a "$S/random" b; printf changed | dd of=a bs=1 seek=70000 conv=notrunc 2>/dev/null
rsync -a --no-whole-file --checksum a b; cmp a b; printf again | dd of=a bs=1 seek=900 conv=notrunc 2>/dev/null
rsync --inplace --no-whole-file -c a b; cmp a b
printf more >> a; rsync --append a b; cmp a b; rm t/run.sh t/pointer; rsync -a --delete t/ u/; test ! -e u/run.sh
rsync -a u/ "$T/out/"; diff -r u "$T/out"; rsync -c -n -i -r t/ u/; rsync -S "$S/sparse" c; cmp c "$S/sparse"
rsync --backup a c; ls; stat -c '%a %Y' u/d1/e1/f1.dat
""",
    ),
    Case(
        name="cpio",
        job="out and in",
        needs=("cpio",),
        script="""
cp -r "$S/tree" t; find t | sort | cpio -o --quiet -H newc > a.cpio; mkdir x; cd x; cpio -i --quiet -d < ../a.cpio
cd ..; diff -r t x/t; find t | cpio -p --quiet -d y; diff -r t y/t; cpio -t --quiet < a.cpio | wc -l
""",
        volatile=("*.cpio",),
    ),
    Case(
        name="zip",
        job="zip, update, unzip, test",
        needs=("zip", "unzip"),
        script="""
cp -r "$S/tree" t; zip -q -r a.zip t; unzip -q a.zip -d x; diff -r t x/t; unzip -tq a.zip; echo new > t/run.sh
touch -d 2030-01-01 t/run.sh; zip -q -u a.zip t/run.sh; unzip -p a.zip t/run.sh; zip -q -d a.zip 't/d0/*'
unzip -l a.zip | tail -1; zip -q - t/run.sh > b.zip; unzip -p b.zip
""",
        volatile=("*.zip",),
    ),
    compressor("gzip", ".gz"),
    compressor("bzip2", ".bz2"),
    compressor("xz", ".xz"),
    compressor("zstd", ".zst", "--rm"),
    Case(
        name="zstd-large",
        job="zstd --long, -T2, dictionary; zgrep, xzcat, zcat",
        needs=("zstd", "xz", "gzip"),
        script="""
cat "$S/random" "$S/text" "$S/random" > a; zstd -q --long=27 -T2 a -o b.zst; zstd -q -d --long=27 b.zst -o c
cmp a c; mkdir flat; zstd -q -r "$S/tree" --output-dir-flat flat; ls flat | wc -l
zstd -q --train-fastcover=k=50,d=8 --maxdict=2KB -B1K "$S/text" -o dict; zstd -q -D dict "$S/text" -o d.zst
zstd -q -dc -D dict d.zst | cmp - "$S/text"
gzip -c "$S/text" > e.gz; zcat e.gz | md5sum; zgrep -c stripe e.gz; xz -0 -T2 -c a > f.xz
xz -l --robot f.xz | grep -c totals; xzcat f.xz | cmp - a
""",
        volatile=("*.zst", "*.gz", "*.xz", "dict", "flat/*"),
        timeout_s=COMPRESS_S,
    ),
]
