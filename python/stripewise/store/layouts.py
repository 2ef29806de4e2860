"""Layouts that a store.toml names: read from a layout or a plan of one file, kept in the store as JSON files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import LayoutError, StoreError, StripewiseError, UsageError
from ..files.fields import read_json
from ..files.parts import replace_part
from ..layout import GIVEN, OWN, Layout, Region, Stripes, layout_json, parse_layout, to_indexes
from ..units import GRANULE_BYTES, command_line, nearest_granules, quoted, round_up
from .config import BUILT_IN_LAYOUTS, StoreConfig

#: Layouts that store.toml names are kept here, inside the store.
LAYOUTS_DIR = "layouts"


def read_layout(path: Path, config: StoreConfig) -> Layout:
    """A layout from a layout JSON or from a plan of one file."""
    data = read_json(path, LayoutError, "a layout or a plan")
    known = [target.name for target in config.cluster.targets]
    if isinstance(data, dict) and isinstance(data.get("files"), list):
        if len(data["files"]) != 1 or not isinstance(data["files"][0], dict):
            raise LayoutError(_not_of_one(path, data["files"], config))
        regions = data["files"][0].get("regions", [])
        if isinstance(regions, list):
            keys = ("start", "len", "stripes")
            regions = [{key: r[key] for key in keys if key in r} if isinstance(r, dict) else r for r in regions]
        data = {"regions": regions}
    return parse_layout(data, path, known)


def _not_of_one(path: Path, files: list[Any], config: StoreConfig) -> str:
    """That a plan of several files has no single layout, and how the layout of one of them is had."""
    said = f"{path}: is a plan of {len(files)} files, a layout comes from a plan of one"
    paths = [file["path"] for file in files if isinstance(file, dict) and isinstance(file.get("path"), str)]
    if not paths:
        return f"{said}; plan a trace again"
    apply = command_line(["stripewise", "apply", str(path), "--store", str(config.root)])
    return (
        f"{said}; for the layouts of all of them: {apply}; after that --like {quoted(paths[0])}, say, in place of "
        f"--layout, or plan one file alone: stripewise plan TRACE --file {quoted(paths[0])} -o one.json"
    )


def save_layout(config: StoreConfig, name: str, layout: Layout) -> str:
    """Keeps `layout` in the store; returns its name there as store.toml writes it."""
    relative = f"{LAYOUTS_DIR}/{name}.json"
    target = config.root / relative
    try:
        replace_part(config.root, relative, json.dumps(layout_json(layout)) + "\n", make=True)
    except OSError as error:
        raise StoreError(f"{target}: cannot be written ({error.strerror}); make the store writable") from error
    return relative


def named_layout(name: str, config: StoreConfig) -> Layout:
    """The layout that def, hservers or the path of a JSON file means; OWN where it is the store's own by its name."""
    if name not in BUILT_IN_LAYOUTS:
        return Layout(read_layout(Path(name), config).regions, GIVEN)
    return Layout(config.layout(name).regions, OWN if name == config.default_layout else GIVEN)


def native_text(layout: Layout, config: StoreConfig) -> str:
    """A layout as the native module takes it. Raises LayoutError as `to_indexes`."""
    said = {} if layout.origin is None else {"origin": layout.origin}
    return json.dumps(to_indexes(layout.regions, config.cluster) | said)


def check_width(width: int, flag: str, where: str = "") -> None:
    """UsageError naming `flag` where a stripe's width in bytes is no multiple of a granule."""
    if width < GRANULE_BYTES or width % GRANULE_BYTES:
        raise UsageError(
            f"{flag}: {width} bytes{where} are not a positive multiple of 4096; the nearest one is "
            f"{nearest_granules(width)}"
        )


def cycle_layout(stripes: Stripes, config: StoreConfig, flag: str) -> Layout:
    """One cycle for a file of any size, its region the store's rounded up to whole cycles. UsageError naming `flag`."""
    for name, width in stripes:
        check_width(width, flag, f" on '{name}'")
    names = [name for name, _ in stripes]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"{flag}: names '{twice}' twice; a target stands once in a cycle")
    cycle = sum(width for _, width in stripes)
    return Layout((Region(0, round_up(config.region_bytes, cycle), stripes),))


def check_active(
    layout: Layout, config: StoreConfig, source: Path | str, unknown: type[StripewiseError] = LayoutError
) -> None:
    """LayoutError where a layout names a target that takes no data, an `unknown` error for one that the store lacks."""
    active = {target.name for target in config.cluster.active}
    states = {target.name: target.state for target in config.cluster.targets}
    for name in dict.fromkeys(name for region in layout.regions for name, _ in region.stripes):
        if name not in active:
            what = f"is {states[name]}" if name in states else "is not a target of the store"
            raise (LayoutError if name in states else unknown)(
                f"{source}: '{name}' {what}; use some of {', '.join(sorted(active))}"
            )
