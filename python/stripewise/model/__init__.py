"""What a request costs: closed formulas, vectorised, without a file or a store in sight.

`request` holds the paper's two tables, `general` the case of any request on any cycle, `bound` the service demand that
no schedule beats; `one_class`, `segment`, `radar` and `shingled` are the other papers', `terms` and `pricelist` lay
them side by side (docs/models.md). All figures are seconds and bytes; the numbers rank layouts, they promise no
wall-clock time.
"""

from .bound import Bound, service_bound
from .figures import CostParameters, DeviceFigures, OpFigures, parameters
from .general import Cycle, bytes_on_servers, request_cost
from .request import hservers_cost, hybrid_cost

__all__ = [
    "Bound",
    "CostParameters",
    "Cycle",
    "DeviceFigures",
    "OpFigures",
    "bytes_on_servers",
    "hservers_cost",
    "hybrid_cost",
    "parameters",
    "request_cost",
    "service_bound",
]
