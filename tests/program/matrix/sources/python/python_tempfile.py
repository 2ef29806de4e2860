"""Tempfile: named, unnamed (O_TMPFILE), spooled, directories; atomic replacement."""

import os
import tempfile

S = os.environ["S"]
T = os.environ["T"]


with tempfile.TemporaryFile(dir=".") as f:
    f.write(b"x" * 99999)
    f.seek(0)
    print(len(f.read()), os.fstat(f.fileno()).st_nlink)
with tempfile.NamedTemporaryFile(dir=".", delete=False) as f:
    f.write(b"y" * 5000)
    f.flush()
    print(os.path.getsize(f.name), oct(os.stat(f.name).st_mode))
os.replace(f.name, "kept")
print(os.listdir("."))
with tempfile.SpooledTemporaryFile(max_size=100, dir=".") as f:
    f.write(b"z" * 1000)
    f.seek(0)
    print(len(f.read()))
with tempfile.TemporaryDirectory(dir=".") as d:
    open(d + "/f", "w").write("x")
fd, name = tempfile.mkstemp(dir=".")
os.write(fd, b"q")
os.close(fd)
os.unlink(name)
print(os.listdir("."))
