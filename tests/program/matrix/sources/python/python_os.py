"""The module os: pread, pwrite, readv, sendfile, copy_file_range, fstat, dup, links, times, scandir, statvfs."""

import os

S = os.environ["S"]
T = os.environ["T"]

fd = os.open("a", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o640)
print(
    os.write(fd, b"0123456789" * 9000),
    os.pwrite(fd, b"xyz", 40000),
    os.pread(fd, 10, 39996),
    os.writev(fd, [b"a" * 10, b"b" * 20]),
    os.preadv(fd, [bytearray(5), bytearray(6)], 3),
)
os.ftruncate(fd, 50000)
os.fsync(fd)
os.fdatasync(fd)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_WILLNEED)
os.posix_fallocate(fd, 0, 60000)
other = os.dup(fd)
print(
    os.lseek(other, 5, 0),
    os.read(fd, 3),
    os.lseek(other, 0, 1),
    os.fstat(other).st_size,
    os.fstat(other).st_mode & 0o777,
)
os.dup2(fd, other)
os.close(fd)
out = os.open("b", os.O_WRONLY | os.O_CREAT)
print(os.sendfile(out, other, 0, 60000), os.lseek(other, 0, 0), os.copy_file_range(other, out, 60000))
os.close(out)
os.close(other)
with os.scandir(".") as entries:
    print(
        sorted(
            (e.name, e.is_file(), e.is_file(follow_symlinks=False), e.is_symlink(), e.is_dir(), e.stat().st_size)
            for e in entries
        )
    )
print(sorted((d, sorted(f)) for d, _, f in os.walk(".")))
os.utime("a", ns=(10**18, 10**18 + 5))
print(os.stat("a").st_mtime_ns, os.lstat("a").st_mode == os.stat("a").st_mode)
os.chmod("a", 0o600)
print(oct(os.stat("a").st_mode), os.access("a", os.R_OK | os.W_OK), os.access("a", os.X_OK))
os.symlink("a", "s")
print(os.readlink("s"), os.path.realpath("s").endswith("/a"), os.path.samefile("s", "a"))
try:
    os.readlink("a")
except OSError as error:
    print(error.strerror)
os.truncate("a", 77)
print(os.path.getsize("a"))
os.rename("a", "c")
os.replace("c", "b")
os.remove("b")
os.unlink("s")
print(os.listdir("."))
r, w = os.pipe()
f = os.open("d", os.O_RDWR | os.O_CREAT, 0o600)
os.write(w, b"spliced")
print(os.splice(r, f, 7, offset_dst=3) if hasattr(os, "splice") else 7)
print(os.pread(f, 20, 0))
d = os.open(".", os.O_RDONLY)
print(os.stat("d", dir_fd=d).st_size, os.listdir(d))
os.rename("d", "e", src_dir_fd=d, dst_dir_fd=d)
os.unlink("e", dir_fd=d)
print(os.fstat(f).st_size, os.fstat(f).st_nlink)
