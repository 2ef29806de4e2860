"""`swd map` in characters: exact where there is room for each track, shares where there is not."""

from __future__ import annotations

import pytest

from stripewise.swd.characters import LINES_MAX, drawn
from test_cli import stripewise


def report(*runs):
    return {"tracks": sum(count for count, _ in runs), "runs": [(name, count) for count, name in runs]}


def test_each_track_has_its_character_where_there_is_room():
    tracks = report((2, "used"), (1, "gap"), (1, "hot"), (1, "gap"), (3, "free"), (12, "used"))
    assert list(drawn(tracks, 0, None, 13)) == ["one track a character", " 0  ##-*-...##", "10  ##########"]
    assert list(drawn(tracks, 2, 4, 40)) == ["one track a character", "2  -*-."]


def test_a_long_map_is_folded_and_tells_how_full_its_tracks_are():
    tracks = report((1000, "used"), *[(1, "used"), (1, "gap")] * 500, (100, "hot"), (901, "free"))
    scale, *lines = drawn(tracks, 0, None, 57)
    text = "".join(line.rsplit("  ", 1)[1] for line in lines)
    assert scale == "16 tracks a character" and len(lines) <= LINES_MAX and max(map(len, lines)) <= 57
    assert len(text) == -(-3001 // 16) and set(text[:62]) == {"#"} and set(text[64:124]) == {"5"}
    assert set(text[126:130]) == {"*"} and set(text[132:]) == {"."}


@pytest.mark.parametrize("columns", ["40", "80"])
def test_the_verb_prints_maps_and_a_legend_that_fit_the_screen(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    words = ("--workload", "uniform", "--requests", "50", "--scheme", "R(4123)", "--used", "10%")
    said = stripewise("swd", "map", *words).output
    maps = said[said.index("R(4123), 10%") :].splitlines()
    assert len([line for line in maps[1:] if line[: len("117,964")].strip().replace(",", "").isdigit()]) == LINES_MAX
    assert all(len(line) <= int(columns) for line in maps[1 : 1 + LINES_MAX])
    assert "1 to 9  so many tenths" in said and "*       hot" in said
