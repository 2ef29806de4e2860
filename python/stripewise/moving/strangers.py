"""Plans of which no file can ever be in a store: those of other stores, and of files that nobody has brought in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import StoreError
from ..plan import Plan
from ..store import Store
from ..store.plans import is_for
from ..units import command_line


def check_no_strangers(store: Store, plan: Plan, source: Path, manage: Sequence[str] = ()) -> None:
    """StoreError where a mover would wait in vain for all files of a plan: none is in the store, and neither its rules
    nor the globs `manage` bring one in.
    """
    if not is_for(store, plan, manage):
        first = plan.files[0].path
        adopt = command_line(["stripewise", "store", "adopt", "--store", str(store.root), first])
        rest = f", nor are the {len(plan.files) - 1:,} others" if len(plan.files) > 1 else ""
        raise StoreError(
            f"{source}: '{first}' is not a file of the store {store.root}{rest}, and no new one of that name would go "
            f"there; give the store that the plan was made for, or plan anew after: {adopt}"
        )
