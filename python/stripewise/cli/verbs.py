"""The table of verbs: where the function of each is. A verb's module is brought in when it is used (`main.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .options import COMMAND_SETTINGS

PROGRAM = "stripewise"
#: Set by completion scripts, when a shell asks what could come next.
COMPLETE_VARIABLE = "_STRIPEWISE_COMPLETE"


@dataclass(frozen=True)
class Verb:
    """A function, and the module below this package that has it."""

    module: str
    function: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: Verbs of one more word, each a subject of its own within this one's.
    within: Mapping[str, Verb] = field(default_factory=dict)


@dataclass(frozen=True)
class Group:
    """Verbs under one word."""

    help: str
    verbs: Mapping[str, Verb | Group]
    #: What is said of words that some take for verbs of this group.
    hints: Mapping[str, str] = field(default_factory=dict)


TABLE: dict[str, Verb | Group] = {
    "init": Verb("init", "init"),
    "doctor": Verb("run.doctor", "doctor", COMMAND_SETTINGS),
    "run": Verb("run.run", "run", COMMAND_SETTINGS),
    "collect": Verb("run.collect", "collect"),
    "import": Verb("run.importing", "import_"),
    "show": Verb("plan.show", "show"),
    "patterns": Verb("pattern.patterns", "patterns"),
    "characterize": Verb("pioneer.characterize", "characterize"),
    "synth": Verb("pioneer.synth", "synth"),
    "play": Verb("pioneer.play", "play"),
    "compare": Verb("pioneer.compare", "compare"),
    "replicate": Verb("copies.replicate", "replicate"),
    "engine": Verb("engine.engine", "engine"),
    "files": Verb("run.files", "files"),
    "plan": Verb("plan.plan", "plan"),
    "apply": Verb("moving.apply", "apply"),
    "tune": Verb("run.tune", "tune", COMMAND_SETTINGS),
    "migrate": Verb("moving.migrate", "migrate"),
    "mover": Group(
        "Show, pause, resume or stop the mover of a store.",
        {
            "status": Verb("moving.mover", "status"),
            "pause": Verb("moving.mover", "pause"),
            "resume": Verb("moving.mover", "resume"),
            "stop": Verb("moving.mover", "stop"),
        },
    ),
    "undo": Verb("undo", "undo"),
    "store": Group(
        "Create, list, check and change stores.\n\nA verb that finds all as asked says so and ends with exit status 0; "
        "a name that leads to nothing is an error.",
        {
            "create": Verb("store.create", "create"),
            "ls": Verb("store.describe", "ls"),
            "info": Verb("store.describe", "info"),
            "df": Verb("store.df", "df"),
            "layout": Verb("store.layout", "layout"),
            "set-layout": Verb("store.set_layout", "set_layout"),
            "find": Verb("store.find", "store_find"),
            "adopt": Verb("store.transfer", "adopt"),
            "export": Verb("store.transfer", "export"),
            "cat": Verb("store.transfer", "cat"),
            "relink": Verb("store.transfer", "relink"),
            "add": Verb("store.add", "add"),
            "drain": Verb("store.targets", "drain"),
            "remove": Verb("store.targets", "remove"),
            "rebalance": Verb("store.targets", "rebalance"),
            "fsck": Verb("store.fsck", "fsck"),
            "scrub": Verb("store.upkeep", "scrub"),
            "gc": Verb("store.upkeep", "gc"),
            "upgrade": Verb("store.upkeep", "upgrade"),
            "trust": Verb("store.trust", "trust_store"),
            "template": Group(
                "Manage layouts of new files, by glob.",
                {
                    "add": Verb("store.template", "add"),
                    "rm": Verb("store.template", "rm"),
                    "ls": Verb("store.template", "ls"),
                },
            ),
            "plan": Group(
                "Manage the plans that runs of an application follow.",
                {"add": Verb("store.plan", "add"), "rm": Verb("store.plan", "rm"), "ls": Verb("store.plan", "ls")},
            ),
            "replica": Group(
                "List and remove the copies that 'replicate' makes.",
                {"ls": Verb("store.replica", "ls"), "rm": Verb("store.replica", "rm")},
            ),
        },
        {"rm": "to remove a file: stripewise run --store STORE -- rm FILE"},
    ),
    "calibrate": Verb("calibrate", "calibrate"),
    "model": Verb("model.model", "model", within={"engine": Verb("model.engine", "engine")}),
    "simulate": Verb("simulate", "simulate"),
    "swd": Group(
        "Simulate shingled write disks: schemes, traces, track maps.",
        {
            "simulate": Verb("swd.simulate", "simulate"),
            "map": Verb("swd.map", "map_"),
            "trace": Verb("swd.trace", "trace"),
            "war": Verb("swd.war", "war"),
        },
    ),
    "glossary": Verb("glossary", "glossary"),
    "completion": Verb("completion", "completion"),
}
