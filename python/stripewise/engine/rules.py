"""What IO-Engine decides for the calls of a file by the rules of the thesis (chapter 3), and why, in words."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from .. import native
from ..units import format_size

#: Largest size of a request, region or stripe, in bytes, and largest number of anything.
SIZE_MAX, NUMBER_MAX = 1 << 50, 1 << 24


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What is known of a file's calls; sizes in bytes, numbers from 1 on."""

    write: bool
    #: Whether requests of all processes interleave; else each has a region of its own.
    strided: bool
    processes: int
    nodes: int
    #: Hint; None: not given.
    cb_nodes: int | None
    #: Of one process: in one call, and in one piece (the same where requests interleave).
    request_bytes: int
    region_bytes: int
    #: Of an old file those that it has, of a new one those that are asked for.
    stripes: int
    stripe_bytes: int
    #: Whether requests begin at multiples of the stripe.
    is_aligned: bool
    targets: int
    lustre: bool
    is_new: bool


@dataclass(frozen=True)
class Ruled:
    """What the rules say: of a new file the stripes, and the rest for these."""

    inputs: Inputs
    count: int
    count_why: str
    contention: str
    #: That goes between request and region; None: none does.
    stripe_bytes: int | None
    mode: str
    why: str
    aggregators: int
    aggregators_most: int
    is_chasm: bool
    co_ratio: int | None
    buffer_bytes: int | None

    def hints(self) -> dict[str, str]:
        """The hints of MPI-IO that carry it out, for ROMIO."""
        found = {}
        if self.inputs.is_new:
            found["striping_factor"] = str(self.count)
        key = f"romio_cb_{'write' if self.inputs.write else 'read'}"
        found[key] = "enable" if self.mode == "collective" else "disable"
        if self.buffer_bytes is not None:
            found["cb_buffer_size"] = str(self.buffer_bytes)
        if self.co_ratio is not None:
            found["romio_lustre_co_ratio"] = str(self.co_ratio)
        return found

    def as_json(self) -> dict[str, object]:
        """For --json."""
        told = {name: value for name, value in asdict(self).items() if name != "inputs"}
        return {"inputs": asdict(self.inputs), "decision": told, "hints": self.hints()}

    def steps(self) -> list[tuple[str, str, str]]:
        """Rows: what is decided, how, and for which reason."""
        inputs = self.inputs
        rows = [("stripe count", str(self.count), self._of_count())]
        if inputs.is_new and not inputs.strided:
            rows.append(("stripe size", *self._of_size()))
        if inputs.processes > 1:
            rows.append(("contention", self.contention, _CONTENTION[self.contention]))
        rows.append(("mode", self.mode, self._of_mode()))
        if self.mode == "collective" or self.why == "chasm":
            rows.append(("aggregators", str(self.aggregators), self._of_aggregators()))
        if self.buffer_bytes is not None:
            rows.append(("cb_buffer_size", f"{self.buffer_bytes:,}", self._of_buffer()))
        if self.co_ratio is not None:
            rows.append(("co_ratio", str(self.co_ratio), self._of_ratio()))
        return rows

    def _of_count(self) -> str:
        asked, targets = self.inputs.stripes, self.inputs.targets
        if not self.inputs.is_new:
            return "step 2: what the file has"
        if self.count_why == "rounded":
            cut = f"{targets} (there are no {asked} targets)" if asked > targets else f"{asked}"
            return f"step 1: {cut} is a prime or a small multiple of one; few numbers of aggregators go with it"
        if self.count_why == "cut":
            return f"step 1: there are {targets} targets"
        return "step 1: as asked for"

    def _of_size(self) -> tuple[str, str]:
        request, region = format_size(self.inputs.request_bytes), format_size(self.inputs.region_bytes)
        if self.stripe_bytes is None:
            return "-", f"section 3.7: no power of two lies between requests of {request} and regions of {region}"
        way = "the one given if it can be" if self.inputs.write else "the largest"
        return format_size(
            self.stripe_bytes
        ), f"a hypothesis (section 3.7), no hint: between {request} and {region}, {way}"

    def _of_mode(self) -> str:
        least = f"{self.aggregators} of {self.aggregators_most} aggregators"
        return {
            "read": "step 3: reads are independent",
            "contiguous write": "step 5: each process writes a region of its own",
            "strided write": "step 7: aggregators join what interleaves",
            "chasm": f"step 7: but the file's stripes leave {least}",
        }[self.why]

    def _of_aggregators(self) -> str:
        if not self.inputs.lustre:
            return "the fewer of cb_nodes and nodes"
        most, count = self.aggregators_most, self.count
        if self.is_chasm:
            cure = f"; of {most} stripes each has one" if self.inputs.is_new else ""
            return f"a chasm: no larger number up to {most} divides {count} stripes{cure}"
        return f"at most {most}, as many as stripes or a number that divides {count}"

    def _of_buffer(self) -> str:
        inputs = self.inputs
        each = f"{inputs.processes} request(s) of {format_size(inputs.request_bytes)}"
        return f"steps 7 and 8: {each} over {self.aggregators} aggregator(s), at most 64 MiB"

    def _of_ratio(self) -> str:
        return (
            "steps 6 and 8: writes wait for each other's locks"
            if self.inputs.write
            else (f"step 4: {self.inputs.processes} processes over {self.count} stripes, from 1 to 4")
        )


_CONTENTION = {
    "least": "requests below the stripe, regions above: a stripe is one process's",
    "aligned": "requests are whole stripes",
    "moderate": "requests are no smaller than a stripe, regions larger",
    "at ends": "processes meet where requests end within stripes",
    "most": "several processes write or read each stripe",
}


def ruled(inputs: Inputs) -> Ruled:
    """What the rules say. Raises InvalidError for numbers of which none may be 0."""
    found = native.call("engine_rules", json.dumps(asdict(inputs)))
    return Ruled(inputs, **found)
