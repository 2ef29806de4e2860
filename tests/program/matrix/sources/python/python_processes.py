"""Subprocess with redirections, pipes, pass_fds, multiprocessing, fcntl locks, fork."""

import fcntl
import hashlib
import multiprocessing
import os
import subprocess

S = os.environ["S"]
T = os.environ["T"]


with open("a", "w") as f:
    print(subprocess.run(["sh", "-c", "seq 1000; echo err >&2"], stdout=f, stderr=subprocess.STDOUT).returncode)
with open("a") as f:
    print(subprocess.run(["wc", "-l"], stdin=f, capture_output=True, text=True).stdout)
with open("a", "rb") as f:
    print(
        subprocess.run(
            ["sh", "-c", f"head -c 4 <&{f.fileno()} | md5sum"], pass_fds=[f.fileno()], capture_output=True, text=True
        ).stdout
    )
    print(f.tell())
print(
    subprocess.check_output(
        ["cat", "a"],
        close_fds=True,
        env={"PATH": os.environ["PATH"], "LD_PRELOAD": os.environ.get("LD_PRELOAD", "")}
        | {k: v for k, v in os.environ.items() if k.startswith("STRIPEWISE")},
    )[-4:]
)


def work(k):
    with open("a", "r+b") as f:
        fcntl.lockf(f, fcntl.LOCK_EX)
        f.seek(k * 10)
        f.write(b"%09d\n" % k)
        f.flush()
        fcntl.lockf(f, fcntl.LOCK_UN)
    return os.path.getsize("a")


with multiprocessing.get_context("fork").Pool(3) as pool:
    print(pool.map(work, range(20))[-1])
pid = os.fork()
if pid == 0:
    open("child", "w").write("from the child")
    os._exit(0)
os.waitpid(pid, 0)
print(open("child").read(), hashlib.md5(open("a", "rb").read()).hexdigest())
