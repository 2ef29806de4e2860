"""Profiles without names: no word of the trace is left, and the workload is the same."""

from __future__ import annotations

import dataclasses
import json
import re

from stripewise.pioneer.characterize import characterize_traces
from traced import Run

SECRETS = ("alice", "fusion", "tokamak", "nodeseven", "secretapp")


def secret_run():
    run = Run(2)
    run.meta |= {"command": ["/home/alice/secretapp"], "cwd": "/home/alice"}
    for rank in range(2):
        for file in (f"/home/alice/fusion/shot.{rank}.dat", "/home/alice/fusion/tokamak.h5"):
            run.opened(rank, file, host="nodeseven")
            for at in range(4):
                run.call(rank, "write", file, 8 * at, 8)
            run.call(rank, "close", file)
        run.call(rank, "rename", "/home/alice/fusion/tokamak.h5", file2="/home/alice/fusion/tokamak.old")
    return run


def strings_in(value):
    """All strings of a JSON value, keys left out."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return {text for each in inner for text in strings_in(each)}
    return {value} if isinstance(value, str) else set()


def test_no_word_of_the_trace_is_in_an_anonymous_profile(tmp_path):
    trace = secret_run().write(tmp_path / "t")
    words = {word for name in SECRETS for word in (name, name[:4])}
    open_text = characterize_traces([trace]).profile.text()
    text = characterize_traces([trace], anonymous=True).profile.text()
    assert any(word in open_text for word in words)
    assert not [word for word in words if word in text]
    # What looks like a file's name is a made one.
    paths = {each for each in strings_in(json.loads(text).get("programs")) if re.search(r"[./]|^f\d", each)}
    assert all(re.fullmatch(r"f\d+(\.\{rank\})?", each) for each in paths)


def test_the_workload_is_the_same_without_names(tmp_path):
    trace = secret_run().write(tmp_path / "t")
    named, hidden = (characterize_traces([trace], anonymous=each).profile for each in (False, True))
    assert hidden.anonymous and hidden.application is None
    bare = {name: dataclasses.replace(each, names=()) for name, each in named.classes.items()}
    assert json.dumps({name: each.as_json() for name, each in bare.items()}) == json.dumps(
        {name: each.as_json() for name, each in hidden.classes.items()}
    )
