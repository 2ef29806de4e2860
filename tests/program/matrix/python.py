"""Python's own library on files: open in all modes, shutil, mmap, temporary files, archives, pickles, os."""

from __future__ import annotations

from .case import Case, Refusal


def script(name: str, job: str, text: str, **more: object) -> Case:
    """A Python script; `sys` has the version."""
    return Case(
        name=f"python-{name}",
        job=job,
        needs=("python3",),
        version='"$PYTHON" --version',
        python=True,
        script="import os, sys, hashlib, shutil\nS = os.environ['S']; T = os.environ['T']\n" + text,
        **more,  # type: ignore[arg-type]
    )


CASES = [
    script(
        "open",
        "open in all modes, buffered and raw, text, seek, truncate, readinto",
        """
from pathlib import Path
data = Path(S, "random").read_bytes()
with open("a", "wb") as f: print(f.write(data), f.tell())
with open("a", "rb") as f: print(hashlib.md5(f.read()).hexdigest(), f.seek(-10, 2), len(f.read()))
with open("a", "r+b") as f: f.seek(1000); f.write(b"changed"); f.seek(990); print(f.read(30)); f.truncate(70000); print(f.seek(0, 2))
with open("a", "ab") as f: print(f.write(b"end"), f.tell())
with open("a", "a+b") as f: f.seek(0); print(len(f.read()))
with open("b", "x") as f: print(f.write("text \\u00e4\\n" * 9999))
try: open("b", "x")
except FileExistsError: print("exists")
with open("b", encoding="utf-8", newline="") as f: print(len(f.readlines()), f.tell())
with open("b", "w+", buffering=1) as f: print("line", file=f); f.seek(0); print(f.read())
with open("a", "rb", buffering=0) as f: b = bytearray(5000); print(f.readinto(b), hashlib.md5(b).hexdigest(), f.fileno() > 2, f.isatty())
with open("a", "rb") as f: print(f.peek(3)[:3], f.read1(7), f.readable(), f.seekable())
print(Path("a").stat().st_size, Path("a").is_file(), Path("a").is_symlink(), Path("c").exists(), [p.name for p in sorted(Path(".").glob("*"))])
Path("c").write_text("x"); Path("c").rename("d"); Path("d").replace("b"); Path("e").touch(); print(Path("b").read_text(), sorted(p.name for p in Path(".").iterdir()))
""",
    ),
    script(
        "os",
        "os: pread, pwrite, readv, sendfile, copy_file_range, fstat, dup, links, times, scandir, statvfs",
        """
fd = os.open("a", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o640)
print(os.write(fd, b"0123456789" * 9000), os.pwrite(fd, b"xyz", 40000), os.pread(fd, 10, 39996), os.writev(fd, [b"a" * 10, b"b" * 20]), os.preadv(fd, [bytearray(5), bytearray(6)], 3))
os.ftruncate(fd, 50000); os.fsync(fd); os.fdatasync(fd); os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_WILLNEED); os.posix_fallocate(fd, 0, 60000)
other = os.dup(fd); print(os.lseek(other, 5, 0), os.read(fd, 3), os.lseek(other, 0, 1), os.fstat(other).st_size, os.fstat(other).st_mode & 0o777); os.dup2(fd, other); os.close(fd)
out = os.open("b", os.O_WRONLY | os.O_CREAT); print(os.sendfile(out, other, 0, 60000), os.lseek(other, 0, 0), os.copy_file_range(other, out, 60000)); os.close(out); os.close(other)
with os.scandir(".") as entries: print(sorted((e.name, e.is_file(), e.is_file(follow_symlinks=False), e.is_symlink(), e.is_dir(), e.stat().st_size) for e in entries))
print(sorted((d, sorted(f)) for d, _, f in os.walk("."))); os.utime("a", ns=(10**18, 10**18 + 5)); print(os.stat("a").st_mtime_ns, os.lstat("a").st_mode == os.stat("a").st_mode)
os.chmod("a", 0o600); print(oct(os.stat("a").st_mode), os.access("a", os.R_OK | os.W_OK), os.access("a", os.X_OK)); os.symlink("a", "s"); print(os.readlink("s"), os.path.realpath("s").endswith("/a"), os.path.samefile("s", "a"))
try: os.readlink("a")
except OSError as error: print(error.strerror)
os.truncate("a", 77); print(os.path.getsize("a")); os.rename("a", "c"); os.replace("c", "b"); os.remove("b"); os.unlink("s"); print(os.listdir("."))
r, w = os.pipe(); f = os.open("d", os.O_RDWR | os.O_CREAT, 0o600); os.write(w, b"spliced"); print(os.splice(r, f, 7, offset_dst=3) if hasattr(os, "splice") else 7); print(os.pread(f, 20, 0))
d = os.open(".", os.O_RDONLY); print(os.stat("d", dir_fd=d).st_size, os.listdir(d)); os.rename("d", "e", src_dir_fd=d, dst_dir_fd=d); os.unlink("e", dir_fd=d); print(os.fstat(f).st_size, os.fstat(f).st_nlink)
""",
    ),
    script(
        "xattr",
        "extended attributes",
        """
open("a", "w").close(); os.setxattr("a", "user.k", b"v"); print(os.listxattr("a"), os.getxattr("a", "user.k")); os.removexattr("a", "user.k"); print(os.listxattr("a"))
""",
    ),
    script(
        "shutil",
        "shutil: copyfile, copy2, copytree, move, make_archive, rmtree; filecmp, glob, fileinput, linecache",
        """
import filecmp, fileinput, glob, linecache
shutil.copyfile(S + "/random", "a"); shutil.copyfile("a", "b"); shutil.copy("a", T + "/out"); shutil.copy2(T + "/out", "c"); print(filecmp.cmp("a", "c", shallow=False), filecmp.cmp("b", S + "/random", shallow=False))
shutil.copytree(S + "/tree", "t", symlinks=True); shutil.copytree("t", "u", symlinks=True); print(filecmp.dircmp("t", "u").diff_files, sorted(glob.glob("t/**/*.txt", recursive=True))); shutil.move("u", "v"); shutil.move("b", T + "/moved"); shutil.move(T + "/moved", "w")
shutil.make_archive("packed", "tar", "t"); shutil.unpack_archive("packed.tar", "x"); print(filecmp.dircmp("t", "x").left_only); shutil.rmtree("v"); print(sorted(os.listdir(".")), shutil.disk_usage(".").total > 0)
with open("l", "w") as f: f.writelines(f"line {k}\\n" for k in range(50))
with fileinput.input("l", inplace=True, backup=".bak") as f:
    for line in f: print(line.replace("line", "row"), end="")
print(linecache.getline("l", 7), end="")
""",
        volatile=("*.tar",),
    ),
    script(
        "mmap",
        "mmap read-only: private and shared, sliced, searched, longer than the file's first stripe",
        """
import mmap
shutil.copyfile(S + "/random", "a")
with open("a", "rb") as f:
    for how in ({"access": mmap.ACCESS_READ}, {"flags": mmap.MAP_PRIVATE, "prot": mmap.PROT_READ}, {"access": mmap.ACCESS_COPY}):
        with mmap.mmap(f.fileno(), 0, **how) as m: print(len(m), hashlib.md5(m).hexdigest(), m[70000:70010], m.find(b"\\x00\\x01"), m.size())
    with mmap.mmap(f.fileno(), 5000, access=mmap.ACCESS_READ, offset=mmap.ALLOCATIONGRANULARITY * 16) as m: print(hashlib.md5(m).hexdigest())
    with mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY) as m: m[3:6] = b"abc"; print(m[:8]); print(os.pread(f.fileno(), 8, 0))
""",
    ),
    script(
        "mmap-write",
        "mmap shared and writable",
        """
import mmap
shutil.copyfile(S + "/text", "a")
with open("a", "r+b") as f, mmap.mmap(f.fileno(), 0) as m: m[5:9] = b"0000"; m.flush()
""",
        refused=Refusal("No such device|Permission denied", "shared writable maps"),
    ),
    script(
        "tempfile",
        "tempfile: named, unnamed (O_TMPFILE), spooled, directories; atomic replacement",
        """
import tempfile
with tempfile.TemporaryFile(dir=".") as f: f.write(b"x" * 99999); f.seek(0); print(len(f.read()), os.fstat(f.fileno()).st_nlink)
with tempfile.NamedTemporaryFile(dir=".", delete=False) as f: f.write(b"y" * 5000); f.flush(); print(os.path.getsize(f.name), oct(os.stat(f.name).st_mode))
os.replace(f.name, "kept"); print(os.listdir("."))
with tempfile.SpooledTemporaryFile(max_size=100, dir=".") as f: f.write(b"z" * 1000); f.seek(0); print(len(f.read()))
with tempfile.TemporaryDirectory(dir=".") as d: open(d + "/f", "w").write("x")
fd, name = tempfile.mkstemp(dir="."); os.write(fd, b"q"); os.close(fd); os.unlink(name); print(os.listdir("."))
""",
    ),
    script(
        "archives",
        "zipfile, tarfile, gzip, bz2, lzma, pickle, json, csv, configparser, numpy-free",
        """
import bz2, csv, gzip, json, lzma, pickle, tarfile, zipfile
with zipfile.ZipFile("a.zip", "w", zipfile.ZIP_DEFLATED) as z: z.write(S + "/text", "text"); z.writestr("s", "string")
with zipfile.ZipFile("a.zip", "a") as z: z.writestr("t", "more")
with zipfile.ZipFile("a.zip") as z: print(z.namelist(), z.testzip(), len(z.read("text"))); z.extractall("z")
with tarfile.open("a.tar.gz", "w:gz") as t: t.add(S + "/tree", "tree")
with tarfile.open("a.tar.gz") as t: print(len(t.getnames())); t.extractall("x", filter="data")
for module, name in ((gzip, "g"), (bz2, "b"), (lzma, "l")):
    with module.open(name, "wb") as f: f.write(open(S + "/text", "rb").read())
    with module.open(name, "rt") as f: print(len(f.read()))
pickle.dump({"k": list(range(9999))}, open("p", "wb")); print(len(pickle.load(open("p", "rb"))["k"])); json.dump([1, 2], open("j", "w")); print(json.load(open("j")))
with open("c", "w", newline="") as f: csv.writer(f).writerows([[k, k * k] for k in range(500)])
print(sum(int(r[1]) for r in csv.reader(open("c"))))
""",
        volatile=("a.zip", "a.tar.gz", "g"),
    ),
    script(
        "processes",
        "subprocess with redirections, pipes, pass_fds, multiprocessing, fcntl locks, fork",
        """
import fcntl, multiprocessing, subprocess
with open("a", "w") as f: print(subprocess.run(["sh", "-c", "seq 1000; echo err >&2"], stdout=f, stderr=subprocess.STDOUT).returncode)
with open("a") as f: print(subprocess.run(["wc", "-l"], stdin=f, capture_output=True, text=True).stdout)
with open("a", "rb") as f: print(subprocess.run(["sh", "-c", f"head -c 4 <&{f.fileno()} | md5sum"], pass_fds=[f.fileno()], capture_output=True, text=True).stdout); print(f.tell())
print(subprocess.check_output(["cat", "a"], close_fds=True, env={"PATH": os.environ["PATH"], "LD_PRELOAD": os.environ.get("LD_PRELOAD", "")} | {k: v for k, v in os.environ.items() if k.startswith("STRIPEWISE")})[-4:])
def work(k):
    with open("a", "r+b") as f: fcntl.lockf(f, fcntl.LOCK_EX); f.seek(k * 10); f.write(b"%09d\\n" % k); f.flush(); fcntl.lockf(f, fcntl.LOCK_UN)
    return os.path.getsize("a")
for method in ("fork", "spawn" if __name__ != "__main__" else "fork"):
    with multiprocessing.get_context(method).Pool(3) as pool: print(pool.map(work, range(20))[-1])
pid = os.fork()
if pid == 0: open("child", "w").write("from the child"); os._exit(0)
os.waitpid(pid, 0); print(open("child").read(), hashlib.md5(open("a", "rb").read()).hexdigest())
""",
    ),
    script(
        "module",
        "import a module, a package and a zip from the directory; py_compile; runpy",
        """
import py_compile, runpy, zipfile
open("one.py", "w").write("x = 41\\n"); os.mkdir("pkg"); open("pkg/__init__.py", "w").write("from one import x\\ny = x + 1\\n")
with zipfile.ZipFile("z.zip", "w") as z: z.writestr("zipped.py", "w = 7\\n")
sys.path[:0] = [os.getcwd(), os.getcwd() + "/z.zip"]; import pkg, zipped; print(pkg.y, zipped.w); print(runpy.run_path("one.py")["x"]); py_compile.compile("one.py", cfile="one.pyc"); print(runpy.run_path("one.pyc")["x"])
""",
        volatile=("*.zip", "*.pyc"),
    ),
]
