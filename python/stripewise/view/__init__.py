"""Pictures of a trace: one HTML page without network, and a trace for ui.perfetto.dev."""

from .page import Shown, write_page
from .perfetto import write_perfetto
from .picture import Picture, picture_of
from .requests import ViewRequests, read_requests

__all__ = [
    "Picture",
    "Shown",
    "ViewRequests",
    "picture_of",
    "read_requests",
    "write_page",
    "write_perfetto",
]
