"""What the verbs of a store say, and how they end, where all is as it is asked for already."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from test_cli import stripewise

#: By a title the verb that is asked a second time, and what it says then. STORE, FILE (managed) and PLAIN stand for
#: those of the test.
AS_ASKED = {
    "adopt": ("adopt --store STORE FILE", "FILE: is a managed file already; nothing is to be done"),
    "adopt in its layout": ("adopt --store STORE --layout def FILE", "FILE: is a managed file already"),
    "adopt a directory": ("adopt --store STORE -r DIR", "no plain files there, so there is nothing to adopt"),
    "export": ("export PLAIN", "PLAIN: is a plain file already; nothing is to be done"),
    "set-layout": ("set-layout FILE --layout def", "0 B moved"),
    "relink": ("relink FILE", "now the name of file"),
    "relink a store": ("relink --moved STORE", "0 link(s) rewritten"),
    "add a template": ("template add STORE PLAIN --stripe-size 4KiB", "the same layout"),
    "drop copies": ("replica rm STORE FILE", "no copies to remove"),
    "drop stale copies": ("replica rm STORE --stale", "no copies to remove"),
    "drain": ("drain STORE hdd1", "0 B of 0 file(s) moved off it"),
    "take back a target": ("drain STORE hdd0 --undo", "there is nothing to take back"),
    "drain and remove": ("drain STORE hdd2 --remove", "target hdd2: is removed already; nothing is to be done"),
    "drain what is removed": ("drain STORE hdd2", "target hdd2: is removed already; nothing is to be done"),
    "remove": ("remove STORE hdd2", "target hdd2: is removed already; nothing is to be done"),
    "rebalance": ("rebalance STORE", "0 file(s) moved"),
    "fsck": ("fsck STORE --repair", "sound"),
    "scrub": ("scrub STORE", "0 summed"),
    "gc": ("gc STORE", "nothing to free"),
    "upgrade": ("upgrade STORE", "0 part(s) rewritten"),
}

#: Names that lead to nothing may be mistyped.
UNKNOWN = {
    "adopt --store STORE NONE": 1,
    "export NONE": 1,
    "set-layout NONE --layout def": 1,
    "relink NONE": 1,
    "replica rm STORE NONE": 1,
    "drain STORE tape": 2,
    "remove STORE tape": 2,
    "template rm STORE NONE": 2,
    "plan rm STORE NONE": 2,
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a file, and without one of its targets."""
    lab = tmp_path_factory.mktemp("nothing") / "lab"
    stripewise("init", "--emulate", lab)
    for name in ("managed", "plain"):
        (lab.parent / name).write_text("bytes")
    stripewise("store", "adopt", "--store", lab / "store", lab.parent / "managed")
    stripewise("store", "drain", lab / "store", "hdd2", "--remove")
    stripewise("store", "set-layout", lab.parent / "managed", "--layout", "def")
    return lab


def words(lab: Path, asked: str) -> Sequence[str]:
    names = {"STORE": lab / "store", "DIR": lab, "FILE": lab.parent / "managed", "PLAIN": lab.parent / "plain"}
    names["NONE"] = lab.parent / "none"
    return ["store", *(str(names.get(word, word)) for word in asked.split())]


@pytest.mark.parametrize("title", AS_ASKED)
def test_a_verb_that_finds_all_as_asked_says_so_and_ends_well(lab: Path, title: str) -> None:
    asked, said = AS_ASKED[title]
    stripewise(*words(lab, asked))
    again = stripewise(*words(lab, asked))
    told = " ".join((again.stdout + again.stderr).split())
    assert said.replace("FILE", str(lab.parent / "managed")).replace("PLAIN", str(lab.parent / "plain")) in told, told


@pytest.mark.parametrize("asked", UNKNOWN)
def test_a_name_that_leads_to_nothing_is_a_failure(lab: Path, asked: str) -> None:
    assert stripewise(*words(lab, asked), code=UNKNOWN[asked]).stderr.count("\n") == 1
