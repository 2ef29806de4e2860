"""What a program did to its files, as the policies want it: one array of data requests per file."""

from .requests import REQUEST_DTYPE, FileRequests, Workload

__all__ = ["REQUEST_DTYPE", "FileRequests", "Workload"]
