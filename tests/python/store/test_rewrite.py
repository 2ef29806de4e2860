"""What verbs change in a store.toml, and what an administrator wrote there and finds again."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from stripewise.store.config import Rule, StoreConfig, config_from, read_store
from stripewise.store.rewrite import rewritten, write_changed

WRITTEN = """# Ann's store: ask her before you change it
version = 1

[store]  # moved here in May
uuid = "12345678-1234-1234-1234-123456789012"
region_bytes = 67_108_864

# the switch in rack 3
[network]

# the slow one
[[target]]
name = "a"  # to be replaced
class = "hdd"
path = "../a"
startup_read_s = 3e-3
startup_write_s = 3e-3
per_byte_read_s = 1e-8
per_byte_write_s = 1e-8

# the swift one
[[target]]
path = "../b"
name = "b"
class = "ssd"
startup_read_s = 1e-4
startup_write_s = 1e-4
per_byte_read_s = 1e-9
per_byte_write_s = 1e-9
[target.device]
channels = 4  # as its page says

# never
[[rule]]
glob = "/scratch/store/**"
action = "ignore"

# Bob's results
[[rule]]
glob = "/results/**"
# that is all
"""
COMMENTS = [line.partition("#")[2] for line in WRITTEN.splitlines() if "#" in line]


@pytest.fixture
def config(tmp_path: Path) -> StoreConfig:
    (tmp_path / "store.toml").write_text(WRITTEN)
    return read_store(tmp_path)


def states(config: StoreConfig, **wanted: str) -> StoreConfig:
    targets = [replace(t, state=wanted.get(t.name, t.state)) for t in config.cluster.targets]
    return config.with_targets(targets)


def grown(config: StoreConfig) -> StoreConfig:
    last = config.cluster.targets[-1]
    return config.with_targets([*config.cluster.targets, replace(last, name="c", path=last.path.with_name("c"))])


def with_template(config: StoreConfig) -> StoreConfig:
    first, *others = config.rules
    return config.with_rules([first, Rule("/results/x", "manage", "layouts/x.json"), *others])


CHANGES = {
    "nothing": lambda config: config,
    "a target that leaves": lambda config: states(config, a="draining"),
    "one with a device that leaves": lambda config: states(config, b="draining"),
    "a new target": grown,
    "a template": with_template,
    "all of it": lambda config: with_template(grown(states(config, a="draining"))),
    "another network": lambda config: replace(
        config, cluster=replace(config.cluster, network=replace(config.cluster.network, per_byte_s=1e-9))
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_comments_and_order_survive_a_change(config, change):
    wanted = change(config)
    text = rewritten(WRITTEN, config, wanted)
    assert config_from(tomllib.loads(text), config.root) == wanted
    assert [line.partition("#")[2] for line in text.splitlines() if "#" in line] == COMMENTS
    kept = text.splitlines()
    assert [line for line in WRITTEN.splitlines() if line not in kept] == []


def test_a_file_that_says_it_already_is_left_byte_by_byte(config):
    assert rewritten(WRITTEN, config, config) == WRITTEN


def test_a_comment_stays_above_its_entry_when_one_comes_before_it(config):
    lines = rewritten(WRITTEN, config, with_template(grown(config))).splitlines()
    assert lines[lines.index("# Bob's results") + 2] == 'glob = "/results/**"'
    assert lines[lines.index("# never") + 2] == 'glob = "/scratch/store/**"'


def test_what_is_taken_away_takes_its_comment_along(config):
    text = rewritten(WRITTEN, config, config.with_rules(config.rules[:1]))
    assert "Bob" not in text and "that is all" in text and "never" in text
    assert config_from(tomllib.loads(text), config.root).rules == config.rules[:1]


def test_without_rules_no_table_of_them_is_left(config):
    text = rewritten(WRITTEN, config, config.with_rules([]))
    assert "[[rule]]" not in text and "the swift one" in text


def test_the_first_rule_comes_behind_the_targets(config):
    none = config.with_rules([])
    before = rewritten(WRITTEN, config, none)
    text = rewritten(before, none, config)
    assert config_from(tomllib.loads(text), config.root) == config and "the swift one" in text


def test_what_is_in_the_file_and_was_not_read_is_overwritten_whole(config):
    edited = WRITTEN.replace("/results/**", "/elsewhere/**")
    assert config_from(tomllib.loads(rewritten(edited, config, config)), config.root) == config


def test_the_file_is_written(config):
    write_changed(config, states(config, a="draining"))
    assert read_store(config.root).cluster.targets[0].state == "draining"
    assert "# to be replaced" in config.path.read_text()
