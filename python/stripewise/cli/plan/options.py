"""The options of planners, on the command line and as policies take them, and those that say which files of a trace
count; loaded only by verbs that read traces.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ...errors import UsageError
from ...files.fields import Fields, read_settings
from ...policy import PlanOptions
from ...policy.base import SIZE_BYTES_MAX
from ...units import GRANULE_BYTES, parse_size, parse_span
from ...workload.counted import LEAST_BYTES, Choice, Rule, left_out_text
from ..options import FileOption, MinGainOption, RegionOption, StepOption, StripeOption
from ..output import printable, say, say_once

WindowOption = Annotated[
    str | None,
    typer.Option(
        "--window",
        metavar="TIME",
        help="Length of a time window to plan separately, e.g. 30s or 10min (default: one window).",
    ),
]
SeedOption = Annotated[
    int, typer.Option("--seed", metavar="N", help="Seed of the random target orders of DEF, PADP and PSA.")
]
SigmaOption = Annotated[
    float | None,
    typer.Option(
        "--sigma",
        metavar="SHARE",
        help="SLAL: server imbalance above which another stripe width is tried (default: 0.2).",
    ),
]
ServersOption = Annotated[
    str | None,
    typer.Option(
        "--servers", metavar="SERVERS", help="SLAL: servers to use, as if equal: hdd, ssd or all (default: hdd)."
    ),
]
TimeLimitOption = Annotated[
    str | None,
    typer.Option(
        "--time-limit",
        metavar="TIME",
        help="best: maximum search time, e.g. 10s or 5min (default: 60s); of all rows with --replicas.",
    ),
]
SmoothOption = Annotated[
    bool | None,
    typer.Option(
        "--smooth/--no-smooth",
        help="best: plan for similar runs (default), or for an exact repetition of the traced requests.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """Which files of a trace count."""

    file: FileOption = None
    include: Annotated[
        list[str] | None,
        typer.Option(
            "--include",
            metavar="GLOB",
            help="Also count files that match this glob (without a /: names in any directory); repeatable.",
        ),
    ] = None
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude", metavar="GLOB", help="Leave out files that match this glob, even with --include; repeatable."
        ),
    ] = None
    all_files: Annotated[
        bool,
        typer.Option("--all-files", help="Count all files but those of --exclude (rules: 'stripewise files')."),
    ] = False

    def choice(self) -> Choice:
        """What these options and the user's list say. Raises UsageError where they do not fit together."""
        if self.file and self.all_files:
            raise UsageError("--all-files: counts all files; leave out --file")
        rules = [Rule(absolute_glob(glob), False) for glob in self.exclude or ()]
        rules += [Rule(absolute_glob(glob), True) for glob in self.include or ()]
        own, least_bytes = user_list()
        return Choice(tuple(self.file or ()), tuple(rules), own, self.all_files, least_bytes)

    @property
    def flags(self) -> list[str]:
        """The options that are given."""
        given = {
            "--file": self.file, "--include": self.include, "--exclude": self.exclude, "--all-files": self.all_files,
        }  # fmt: skip
        return [flag for flag, value in given.items() if value]


def absolute_glob(glob: str) -> str:
    """The glob of whole paths that one of --include or --exclude means: without a / it is of names in any directory."""
    if "/" not in glob:
        return f"*/{glob}"
    return glob if glob.startswith("*") else os.path.abspath(os.path.expanduser(glob))


def user_list_path() -> Path:
    """The user's list of files that count: `stripewise/files.toml` in XDG_CONFIG_HOME, or in ~/.config."""
    home = os.environ.get("XDG_CONFIG_HOME", "")
    return Path(home if home.startswith("/") else os.path.expanduser("~/.config")) / "stripewise" / "files.toml"


def user_list() -> tuple[tuple[Rule, ...], int]:
    """The rules of the user's list, and the bytes of I/O from which a file counts. Raises UsageError for a bad list."""
    path = user_list_path()
    if not os.path.lexists(path):
        return (), LEAST_BYTES
    fields = Fields(
        read_settings(path, UsageError, "include, exclude and least as in docs/formats.md"), path, "", UsageError
    )
    fields.only({"exclude", "include", "least"})
    rules = [
        Rule(glob, counts) for key, counts in (("exclude", False), ("include", True)) for glob in _globs(fields, key)
    ]
    least = fields.text("least", None) if "least" in fields.data else None
    return tuple(rules), LEAST_BYTES if least is None else parse_size(least, f"{path}: least")


def _globs(fields: Fields, key: str) -> list[str]:
    globs = []
    for glob in fields.items(key) if key in fields.data else []:
        if not isinstance(glob, str) or not glob or ("/" in glob and not glob.startswith(("/", "~/", "*"))):
            raise fields.error(key, f"has {glob!r}", "give globs of whole paths (/opt/data/*) or of names (*.log)")
        globs.append(absolute_glob(glob))
    return globs


def say_of_trace(source: str, *, ended: str = "", left_out: Sequence[tuple[str, int]] = ()) -> None:
    """A line each of what a user must know of a trace: how its run ended, where not well, and files left out of a plan.

    `collect` and `plan` tell these; other verbs would say the same of the same trace again.
    """
    if ended:
        text = f"stripewise: {printable(source)}: {ended}"
        say_once(text, text)
    if left_out:
        say(f"stripewise: {left_out_text(left_out)}; --all-files includes them")


@dataclass(frozen=True, kw_only=True)
class SizeOptions:
    """Sizes that planners go by."""

    region_size: RegionOption = "64MiB"
    stripe_size: StripeOption = "64KiB"
    step_size: StepOption = "4KiB"


def _size_option(flag: str, help_text: str, default: str) -> Any:
    return typer.Option(flag, metavar="SIZE", help=f"{help_text} (default: that of --plan alone, else {default}).")


@dataclass(frozen=True, kw_only=True)
class SimulatedSizeOptions:
    """Those of `SizeOptions` that were given beside plans, which were made with sizes of their own."""

    region_size: Annotated[str | None, _size_option("--region-size", "Region size", "64MiB")] = None
    stripe_size: Annotated[str | None, _size_option("--stripe-size", "Stripe width of DEF", "64KiB")] = None
    step_size: Annotated[str | None, _size_option("--step-size", "Step of the stripe width search", "4KiB")] = None

    def with_default_of(self, plans: Sequence[Mapping[str, Any]]) -> SizeOptions:
        """All sizes: those that were given, else those of the plans' options, where all plans have one and the same."""
        found = {}
        for name, flag in asdict(self).items():
            of_plans = [plan.get(name.removesuffix("_size") + "_bytes") for plan in plans]
            if flag is not None:
                found[name] = flag
            elif of_plans and _is_granules(of_plans[0]) and of_plans.count(of_plans[0]) == len(of_plans):
                found[name] = str(of_plans[0])
        return SizeOptions(**found)


def _is_granules(size: object) -> bool:
    """Whether it is a size that options take; plans may have been edited."""
    return type(size) is int and 0 < size <= SIZE_BYTES_MAX and size % GRANULE_BYTES == 0


@dataclass(frozen=True, kw_only=True)
class WindowOptions:
    """Time windows, and what moves between them must gain."""

    window: WindowOption = None
    min_gain: MinGainOption = None


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Options that single policies take for their search."""

    sigma: SigmaOption = None
    servers: ServersOption = None
    time_limit: TimeLimitOption = None
    smooth: SmoothOption = None


def plan_options(
    sizes: SizeOptions, seed: int, search: SearchOptions, windows: WindowOptions | None = None
) -> PlanOptions:
    """The plan options of the command line. Raises UsageError for a bad one."""
    given = windows or WindowOptions()
    return PlanOptions(
        region_bytes=parse_size(sizes.region_size, "--region-size"),
        stripe_bytes=parse_size(sizes.stripe_size, "--stripe-size"),
        step_bytes=parse_size(sizes.step_size, "--step-size"),
        seed=seed,
        window_ns=None if given.window is None else parse_span(given.window, "--window"),
        min_gain=given.min_gain,
        sigma=search.sigma,
        servers=search.servers,
        time_limit_s=None if search.time_limit is None else parse_span(search.time_limit, "--time-limit") / 1e9,
        smooth=search.smooth,
    )


def require_window(windows: WindowOptions) -> None:
    """UsageError for --min-gain without --window."""
    if windows.min_gain is not None and windows.window is None:
        raise UsageError("--min-gain: applies to moves between windows; give --window too")
