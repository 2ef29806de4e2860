"""Stores: what one holds and does (`store`), its store.toml (`config`), how it is made, filled, trusted and kept."""

from .create import create_store
from .layouts import LAYOUTS_DIR, read_layout, save_layout
from .store import Store, StoredFile, Temporary

__all__ = ["LAYOUTS_DIR", "Store", "StoredFile", "Temporary", "create_store", "read_layout", "save_layout"]
