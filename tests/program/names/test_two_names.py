"""A store that a process reaches by two names: links say the one that their maker had."""

from __future__ import annotations

import sys

from rig import Maker, execute

#: Makes a file under the name that the process was started with, then uses, renames and removes one of the other name.
BOTH = """
import os, sys
here, there, moved = sys.argv[1:]
with open(here, "w") as file:
    file.write("here")
with open(there, "a") as file:
    file.write(" and there")
assert open(there).read() == "made and there"
os.rename(there, moved)
assert open(moved).read() == "made and there"
with open(moved, "a") as file:
    file.write(", moved")
os.unlink(moved)
os.unlink(here)
"""


def test_a_process_uses_renames_and_removes_files_of_its_store_s_other_name(make_store: Maker) -> None:
    store = make_store(layout="striped")
    store.program("sh", "-c", f"printf made >{store.data}/there")
    alias = store.base / "alias"
    alias.symlink_to(store.root)
    environment = store.environment() | {"STRIPEWISE_STORE": str(alias)}
    names = [store.data / name for name in ("here", "there", "moved")]
    execute([sys.executable, "-c", BOTH, *names], environment)
    assert not list(store.data.iterdir()) and not list((store.root / "files").iterdir())
    store.fsck()
