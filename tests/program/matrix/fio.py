"""fio with checksums in every block: each engine writes, reads back and verifies, or fails closed."""

from __future__ import annotations

from .case import Case, Refusal

OPTIONS = "--directory=. --size=4m --randseed=7 --verify=crc32c --verify_fatal=1 --group_reporting --output=$T/out"


def engine(
    name: str, more: str = "", refused: Refusal | None = None, suffix: str = "", job: str = "", shape: str = ""
) -> Case:
    """Random and sequential writes by one engine, verified by it; then read again and verified by psync.

    `more` are options of the engine alone, `shape` those that say how many processes and files there are.
    """
    more = f"{more} {shape}"
    return Case(
        name=f"fio-{name}{suffix}",
        job=job or f"ioengine={name}: write, verify crc32c",
        needs=("fio",),
        script=f"""
fio --name=seq --ioengine={name} --rw=write --bs=16k {more} {OPTIONS} ||
    {{ fio --name=seq --ioengine={name} --rw=write {more} {OPTIONS.partition(" --output")[0]} 2>&1 | grep -i error || :
       echo failed; exit 1; }}
fio --name=rand --ioengine={name} --rw=randwrite --bs=4k {more} {OPTIONS} || {{ cat "$T/out"; exit 1; }}
fio --name=seq --ioengine=psync --rw=read --bs=16k {shape} {OPTIONS}
fio --name=seq --ioengine={name} --rw=read --bs=16k {more} {OPTIONS}
echo verified; ls
""",
        volatile=("seq*", "rand*", "local*"),
        refused=refused,
    )


CASES = [
    engine("psync"),
    engine("sync"),
    engine("vsync", "--iodepth=8"),
    engine("pvsync"),
    engine("pvsync2"),
    engine("psync", "--direct=1", suffix="-direct", job="ioengine=psync, direct=1"),
    engine("psync", "--fsync=4 --fallocate=posix", suffix="-fsync", job="ioengine=psync, fsync=4, fallocate=posix"),
    engine("psync", shape="--numjobs=3 --nrfiles=2", suffix="-jobs", job="ioengine=psync, three processes"),
    engine("posixaio", "--iodepth=8"),
    Case(
        name="fio-mmap-read",
        job="ioengine=mmap: read, verify crc32c",
        needs=("fio",),
        script=f"""
fio --name=seq --ioengine=psync --rw=write --bs=16k {OPTIONS}
fio --name=seq --ioengine=mmap --rw=read --bs=16k {OPTIONS} || {{ cat "$T/out"; exit 1; }}
fio --name=seq --ioengine=mmap --rw=randread --bs=16k {OPTIONS} && echo verified
""",
        volatile=("seq*", "local*"),
    ),
    engine("mmap", suffix="-write"),
    engine(
        "libaio",
        "--iodepth=8",
        refused=Refusal("Function not implemented", "libaio asks the kernel past the library: ENOSYS", everywhere=True),
    ),
    engine(
        "io_uring",
        "--iodepth=8",
        refused=Refusal("Function not implemented", "a ring asks the kernel past the library: ENOSYS", everywhere=True),
    ),
]
