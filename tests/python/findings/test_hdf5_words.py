"""Small requests of HDF5 files, and prices beyond what the requests took."""

import pytest

from runs import rng, write_rows
from stripewise.findings import DEFAULT_CLUSTER, facts_of, findings_of
from stripewise.findings.hdf5 import MAGIC, is_hdf5
from support import KIB, MIB
from test_cli import stripewise


def test_a_file_of_hdf5_is_known_by_its_first_bytes_or_its_name(tmp_path):
    (tmp_path / "plain").write_bytes(MAGIC + bytes(8))
    (tmp_path / "named.h5").write_bytes(b"text")
    assert is_hdf5(str(tmp_path / "plain")) and not is_hdf5(str(tmp_path / "named.h5"))
    assert is_hdf5("/none/out.H5") and not is_hdf5("/none/out.dat") and not is_hdf5("a\0b")


@pytest.mark.parametrize("name", ["/d/out.h5", "/d/out.dat"])
def test_small_writes_beside_large_ones_are_priced_alone_and_advice_is_hdf5s(tmp_path, name):
    places = rng(4).permutation(200) * 16 * KIB
    rows = [(0, "write", name, int(at), 5 * KIB) for at in places]
    rows += [(0, "write", name, 8 * MIB + int(k) * MIB, 648_000) for k in rng(5).permutation(150)]
    trace = write_rows(tmp_path / "t", rows)
    (found,) = findings_of(facts_of(trace), DEFAULT_CLUSTER)
    (alone,) = findings_of(facts_of(write_rows(tmp_path / "alone", rows[:200])), DEFAULT_CLUSTER)
    assert found.cause == "scattered" and found.evidence[1] == "99% of the bytes are in larger ones"
    assert found.price == alone.price and len(alone.evidence) == 1
    if name.endswith("h5"):
        assert (found.title, found.command) == ("small writes of HDF5", "")
        assert found.advice.startswith(
            "HDF5 metadata or a contiguous dataset: chunk it, write larger hyperslabs, flush"
        )
    else:
        assert found.title == "small writes in no order" and found.advice.startswith("sort the writes by place")
    said = stripewise("show", trace).stdout
    # 350 requests, a microsecond each.
    assert "   took 0.00035 s of the run; no price, for by the model it would be more (memory or" in said
    assert "; upper limits, for the run was faster than the model (memory or" in said
    assert found.price.text not in said
