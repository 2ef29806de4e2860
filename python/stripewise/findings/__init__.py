"""What a run did to its files in a page, and what is wrong with it: causes with evidence, price and cure."""

from .calls import MetadataCalls
from .facts import FileCopies, FileFacts, RunFacts, facts_of
from .find import findings_of
from .finding import Finding
from .price import DEFAULT_CLUSTER, Seconds, why_quicker
from .summary import FileLine, RunSummary, reads_of, span_of, summary_of_run, waits_of

__all__ = [
    "DEFAULT_CLUSTER", "FileCopies", "FileFacts", "FileLine", "Finding", "MetadataCalls", "RunFacts", "RunSummary",
    "Seconds", "facts_of", "findings_of", "reads_of", "span_of", "summary_of_run", "waits_of", "why_quicker",
]  # fmt: skip
