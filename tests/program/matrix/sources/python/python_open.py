"""Open in all modes, buffered and raw, text, seek, truncate, readinto."""

import hashlib
import os
from pathlib import Path

S = os.environ["S"]
T = os.environ["T"]


data = Path(S, "random").read_bytes()
with open("a", "wb") as f:
    print(f.write(data), f.tell())
with open("a", "rb") as f:
    print(hashlib.md5(f.read()).hexdigest(), f.seek(-10, 2), len(f.read()))
with open("a", "r+b") as f:
    f.seek(1000)
    f.write(b"changed")
    f.seek(990)
    print(f.read(30))
    f.truncate(70000)
    print(f.seek(0, 2))
with open("a", "ab") as f:
    print(f.write(b"end"), f.tell())
with open("a", "a+b") as f:
    f.seek(0)
    print(len(f.read()))
with open("b", "x") as f:
    print(f.write("text \u00e4\n" * 9999))
try:
    open("b", "x")
except FileExistsError:
    print("exists")
with open("b", encoding="utf-8", newline="") as f:
    print(len(f.readlines()), f.tell())
with open("b", "w+", buffering=1) as f:
    print("line", file=f)
    f.seek(0)
    print(f.read())
with open("a", "rb", buffering=0) as f:
    b = bytearray(5000)
    print(f.readinto(b), hashlib.md5(b).hexdigest(), f.fileno() > 2, f.isatty())
with open("a", "rb") as f:
    print(f.peek(3)[:3], f.read1(7), f.readable(), f.seekable())
print(
    Path("a").stat().st_size,
    Path("a").is_file(),
    Path("a").is_symlink(),
    Path("c").exists(),
    [p.name for p in sorted(Path(".").glob("*"))],
)
Path("c").write_text("x")
Path("c").rename("d")
Path("d").replace("b")
Path("e").touch()
print(Path("b").read_text(), sorted(p.name for p in Path(".").iterdir()))
