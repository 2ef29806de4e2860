"""cluster.toml and store.toml: what is read, and one clear sentence for everything that is wrong."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripewise import native
from stripewise.cluster import Cluster, cluster_from_mapping, read_cluster
from stripewise.errors import ClusterError
from stripewise.store.config import Rule, StoreConfig, check_store_size, new_uuid, read_store
from stripewise.units import GRANULE_BYTES, OFFSET_BYTES_MAX

TARGET = """
[[target]]
name = "hdd0"
class = "hdd"
kind = "emulated"
path = "targets/hdd0"
capacity_bytes = 1048576
startup_read_s = 0.003
startup_write_s = 0.004
per_byte_read_s = 1e-8
per_byte_write_s = 2e-8
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "cluster.toml"
    path.write_text(text)
    return path


def test_a_cluster_is_read_with_paths_relative_to_its_file(tmp_path):
    cluster = read_cluster(written(tmp_path, "version = 1\n[network]\nprocesses_per_node = 4\n" + TARGET))
    target = cluster.targets[0]
    assert target.path == tmp_path / "targets/hdd0"
    assert (target.capacity_bytes, target.startup_write_s, target.per_byte_write_s) == (1048576, 0.004, 2e-8)
    assert cluster.network.processes_per_node == 4
    assert [t.name for t in cluster.hservers] == ["hdd0"] and not cluster.sservers


BAD = {
    "": "no [[target]] is given",
    "version = 2\n" + TARGET: "version = 2 is newer",
    "version = 0\n" + TARGET: "version = 0 is out of range",
    "version = 'x'\n" + TARGET: "version = 'x' is not a whole number",
    "= 3": "not TOML",
    TARGET + TARGET: "target[1].name 'hdd0' is used twice",
    TARGET + TARGET.replace('"hdd0"', '"hdd1"'): "target[1].path is the directory of 'hdd0' too",
    TARGET.replace("0.003", "-1"): "target[0].startup_read_s = -1 is out of range",
    TARGET.replace("0.003", "nan"): "target[0].startup_read_s = nan is out of range",
    TARGET.replace("0.003", "inf"): "target[0].startup_read_s = inf is out of range",
    TARGET.replace("0.003", "true"): "target[0].startup_read_s = True is not a number",
    TARGET.replace("0.003", "'3 ms'"): "target[0].startup_read_s = '3 ms' is not a number",
    TARGET.replace("1e-8", "100"): "target[0].per_byte_read_s = 100 is out of range",
    TARGET.replace("1048576", "-5"): "target[0].capacity_bytes = -5 is out of range",
    TARGET.replace("1048576", "1.5"): "target[0].capacity_bytes = 1.5 is not a whole number",
    TARGET.replace('"hdd"', '"tape"'): "target[0].class = 'tape' is unknown; use one of hdd, ssd, swd, any",
    TARGET.replace('"emulated"', '"rados"'): "target[0].kind = 'rados' is unknown",
    TARGET.replace("startup_write_s", "startup_wrte_s"): "target[0].startup_wrte_s is not a known key; did you mean",
    TARGET.replace("startup_write_s = 0.004\n", ""): "target[0].startup_write_s is missing",
    TARGET.replace('"hdd0"', '"a b"'): "target[0].name 'a b' holds a space",
    TARGET.replace('"targets/hdd0"', '""'): "target[0].path = '' is not a string",
    "target = 3": "target = 3 is not a list of tables",
    "network = 3\n" + TARGET: "network = 3 is not a table",
    "[network]\nprocesses_per_node = 0\n" + TARGET: "network.processes_per_node = 0 is out of range",
    "networks = 1\n" + TARGET: "networks is not a known key; did you mean network?",
}


@pytest.mark.parametrize("text", list(BAD))
def test_a_bad_cluster_is_one_sentence_with_file_key_and_cure(tmp_path, text):
    path = written(tmp_path, text)
    with pytest.raises(ClusterError) as caught:
        read_cluster(path)
    said = str(caught.value)
    assert said.startswith(f"{path}: ") and BAD[text] in said and "; " in said and "\n" not in said


def test_a_missing_and_a_binary_cluster_file(tmp_path):
    with pytest.raises(ClusterError, match="cannot be read"):
        read_cluster(tmp_path / "none.toml")
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ClusterError, match="not UTF-8 at byte 0"):
        read_cluster(tmp_path / "b.toml")
    (tmp_path / "huge.toml").write_text(TARGET.replace("1048576", "0x" + "f" * 5000))
    with pytest.raises(ClusterError, match="capacity_bytes = a huge number is out of range"):
        read_cluster(tmp_path / "huge.toml")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@given(st.data())
def test_a_mutated_cluster_is_read_or_refused_in_one_sentence(data):
    mapping = tomllib.loads("version = 1\n" + TARGET + TARGET.replace("hdd0", "hdd1") + "[network]\nper_byte_s = 0.0\n")
    place = data.draw(st.sampled_from([mapping, mapping["target"][0], mapping["target"][1], mapping["network"]]))
    place[data.draw(st.sampled_from(list(place)) | st.text(max_size=8))] = data.draw(values)
    try:
        cluster_from_mapping(mapping, Path("cluster.toml"))
    except ClusterError as error:
        assert str(error).startswith("cluster.toml: ") and len(str(error).splitlines()) == 1


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_a_cluster_or_a_cluster_error(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "fuzz.toml"
    path.write_bytes(content)
    with pytest.raises(ClusterError):
        read_cluster(path)


def a_store(tmp_path: Path, rules=()) -> StoreConfig:
    cluster = read_cluster(written(tmp_path, TARGET))
    config = StoreConfig(tmp_path / "store", cluster, new_uuid(), 1 << 20, "def", tuple(rules))
    config.root.mkdir(exist_ok=True)
    config.path.write_text(config.text())
    return config


def test_a_store_is_written_and_read_back_unchanged(tmp_path):
    rules = [
        Rule('/data/"quoted"\\\x7f\n/**'),
        Rule("/data/*.log", "ignore"),
        Rule("/ü/**", "manage", "layouts/a.json"),
    ]
    config = a_store(tmp_path, rules)
    again = read_store(config.root)
    assert again.rules == config.rules and again.cluster.targets == config.cluster.targets
    assert (again.uuid, again.region_bytes, again.text()) == (config.uuid, config.region_bytes, config.text())


def test_a_store_serves_as_a_cluster(tmp_path):
    assert read_cluster(a_store(tmp_path).root).digest() == read_cluster(tmp_path / "cluster.toml").digest()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("uuid = ", "uid = ", "store.uid is not a known key; did you mean uuid?"),
        ("region_bytes = 1048576", "region_bytes = 1000000", "store.region_bytes = 1000000 is not a multiple of 4096"),
        ('uuid = "', 'uuid = "zz', "is not a UUID"),
        ("version = 1", "version = 7", "version = 7 is newer"),
        ('glob = "/data', 'glob = "data', "rule[0].glob = 'data/**' is not absolute"),
        ('action = "manage"', 'action = "delete"', "rule[0].action = 'delete' is unknown; use one of manage, ignore"),
    ],
)
def test_a_bad_store_toml_is_one_sentence(tmp_path, old, new, said):
    config = a_store(tmp_path, [Rule("/data/**")])
    config.path.write_text(config.path.read_text().replace(old, new))
    with pytest.raises(ClusterError) as caught:
        read_store(config.root)
    assert said in str(caught.value) and str(config.path) in str(caught.value)


def test_a_directory_that_is_no_store_says_how_to_make_one(tmp_path):
    with pytest.raises(ClusterError, match="stripewise init"):
        read_store(tmp_path)


def test_a_store_has_as_many_targets_as_the_library_takes(tmp_path):
    most = native.limit("MAX_TARGETS")

    def cluster(count: int) -> Cluster:
        return read_cluster(written(tmp_path, "".join(TARGET.replace("hdd0", f"hdd{i}") for i in range(count))))

    check_store_size(cluster(most))
    larger = cluster(most + 1)
    with pytest.raises(ClusterError) as caught:
        check_store_size(larger)
    said = str(caught.value)
    assert f"{larger.source}: 257 [[target]] tables are more than the 256" in said and "use fewer targets" in said


def test_a_store_has_as_many_rules_as_the_library_takes(tmp_path):
    most = native.limit("MAX_RULES")
    config = a_store(tmp_path)
    assert len(config.with_rules([Rule(f"/data/{i}") for i in range(most)]).rules) == most
    with pytest.raises(ClusterError, match=rf"{most + 1} \[\[rule\]\] tables are more than {most}; use wider globs"):
        config.with_rules([Rule(f"/data/{i}") for i in range(most + 1)])


def test_bytes_of_a_layout_are_counted_as_the_library_counts_them():
    assert (native.limit("GRANULE"), native.limit("MAX_LOGICAL")) == (GRANULE_BYTES, OFFSET_BYTES_MAX)
