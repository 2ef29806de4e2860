"""Layouts that a store.toml names: read from a layout or a plan of one file, kept in the store as JSON files."""

from __future__ import annotations

import json
from pathlib import Path

from ..errors import LayoutError, StoreError
from ..files.fields import read_json
from ..files.parts import replace_part
from ..layout import Layout, layout_json, parse_layout
from .config import StoreConfig

#: Layouts that store.toml names are kept here, inside the store.
LAYOUTS_DIR = "layouts"


def read_layout(path: Path, config: StoreConfig) -> Layout:
    """A layout from a layout JSON or from a plan of one file."""
    data = read_json(path, LayoutError, "a layout or a plan")
    known = [target.name for target in config.cluster.targets]
    if isinstance(data, dict) and isinstance(data.get("files"), list):
        if len(data["files"]) != 1 or not isinstance(data["files"][0], dict):
            raise LayoutError(
                f"{path}: holds {len(data['files'])} files, a template comes from a plan of one; split it"
            )
        regions = data["files"][0].get("regions", [])
        if isinstance(regions, list):
            keys = ("start", "len", "stripes")
            regions = [{key: r[key] for key in keys if key in r} if isinstance(r, dict) else r for r in regions]
        data = {"regions": regions}
    return parse_layout(data, path, known)


def save_layout(config: StoreConfig, name: str, layout: Layout) -> str:
    """Keeps `layout` in the store; returns its name there as store.toml writes it."""
    relative = f"{LAYOUTS_DIR}/{name}.json"
    target = config.root / relative
    try:
        replace_part(config.root, relative, json.dumps(layout_json(layout)) + "\n", make=True)
    except OSError as error:
        raise StoreError(f"{target}: cannot be written ({error.strerror}); make the store writable") from error
    return relative
