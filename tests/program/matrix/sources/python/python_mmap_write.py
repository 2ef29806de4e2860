"""mmap shared and writable: written, flushed, seen by read, by another process and by another map."""

import hashlib
import mmap
import os
import shutil

shutil.copyfile(os.environ["S"] + "/random", "a")
with open("a", "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
    m[5:9] = b"0000"
    m[700_000:700_010] = b"0123456789"
    m.flush()
    print(os.pread(f.fileno(), 8, 3), os.pread(f.fileno(), 12, 699_999))
    os.pwrite(f.fileno(), b"written", 4000)
    print(m[3998:4010])
    pid = os.fork()
    if pid == 0:
        m[80_000:80_005] = b"child"
        os._exit(0)
    os.waitpid(pid, 0)
    print(m[79_999:80_006])
    with mmap.mmap(f.fileno(), 8192, offset=8192 * 8) as other:
        other[0:3] = b"two"
    print(m[65_536:65_540], m.rfind(b"child"))
    m.move(10, 100_000, 50_000)
    m.resize(1_000_001)
    print(len(m), os.fstat(f.fileno()).st_size)
with open("a", "rb") as f:
    print(hashlib.md5(f.read()).hexdigest())
with open("b", "w+b") as f:
    f.truncate(77)
    with mmap.mmap(f.fileno(), 0) as m:
        m[76] = 65
    print(f.read())
