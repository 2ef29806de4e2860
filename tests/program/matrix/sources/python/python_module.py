"""Import a module, a package and a zip from the directory; py_compile; runpy."""

import importlib
import os
import py_compile
import runpy
import sys
import zipfile

S = os.environ["S"]
T = os.environ["T"]


open("one.py", "w").write("x = 41\n")
os.mkdir("pkg")
open("pkg/__init__.py", "w").write("from one import x\ny = x + 1\n")
with zipfile.ZipFile("z.zip", "w") as z:
    z.writestr("zipped.py", "w = 7\n")
sys.path[:0] = [os.getcwd(), os.getcwd() + "/z.zip"]
pkg = importlib.import_module("pkg")
zipped = importlib.import_module("zipped")

print(pkg.y, zipped.w)
print(runpy.run_path("one.py")["x"])
py_compile.compile("one.py", cfile="one.pyc")
print(runpy.run_path("one.pyc")["x"])
