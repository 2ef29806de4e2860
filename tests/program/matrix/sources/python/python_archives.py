"""Zipfile, tarfile, gzip, bz2, lzma, pickle, json, csv, configparser."""

import bz2
import csv
import gzip
import json
import lzma
import os
import pickle
import tarfile
import zipfile

S = os.environ["S"]
T = os.environ["T"]


with zipfile.ZipFile("a.zip", "w", zipfile.ZIP_DEFLATED) as z:
    z.write(S + "/text", "text")
    z.writestr("s", "string")
with zipfile.ZipFile("a.zip", "a") as z:
    z.writestr("t", "more")
with zipfile.ZipFile("a.zip") as z:
    print(z.namelist(), z.testzip(), len(z.read("text")))
    z.extractall("z")
with tarfile.open("a.tar.gz", "w:gz") as t:
    t.add(S + "/tree", "tree")
with tarfile.open("a.tar.gz") as t:
    print(len(t.getnames()))
    t.extractall("x", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
for module, name in ((gzip, "g"), (bz2, "b"), (lzma, "l")):
    with module.open(name, "wb") as f:
        f.write(open(S + "/text", "rb").read())
    with module.open(name, "rt") as f:
        print(len(f.read()))
pickle.dump({"k": list(range(9999))}, open("p", "wb"))
print(len(pickle.load(open("p", "rb"))["k"]))
json.dump([1, 2], open("j", "w"))
print(json.load(open("j")))
with open("c", "w", newline="") as f:
    csv.writer(f).writerows([[k, k * k] for k in range(500)])
print(sum(int(r[1]) for r in csv.reader(open("c"))))
