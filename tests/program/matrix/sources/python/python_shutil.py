"""Shutil: copyfile, copy2, copytree, move, make_archive, rmtree; filecmp, glob, fileinput, linecache."""

import filecmp
import fileinput
import glob
import linecache
import os
import shutil

S = os.environ["S"]
T = os.environ["T"]


shutil.copyfile(S + "/random", "a")
shutil.copyfile("a", "b")
shutil.copy("a", T + "/out")
shutil.copy2(T + "/out", "c")
print(filecmp.cmp("a", "c", shallow=False), filecmp.cmp("b", S + "/random", shallow=False))
shutil.copytree(S + "/tree", "t", symlinks=True)
shutil.copytree("t", "u", symlinks=True)
print(filecmp.dircmp("t", "u").diff_files, sorted(glob.glob("t/**/*.txt", recursive=True)))
shutil.move("u", "v")
shutil.move("b", T + "/moved")
shutil.move(T + "/moved", "w")
shutil.make_archive("packed", "tar", "t")
shutil.unpack_archive("packed.tar", "x")
print(filecmp.dircmp("t", "x").left_only)
shutil.rmtree("v")
print(sorted(os.listdir(".")), shutil.disk_usage(".").total > 0)
with open("l", "w") as f:
    f.writelines(f"line {k}\n" for k in range(50))
with fileinput.input("l", inplace=True, backup=".bak") as f:
    for line in f:
        print(line.replace("line", "row"), end="")
print(linecache.getline("l", 7), end="")
