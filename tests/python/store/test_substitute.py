"""A target taken out of a layout: what takes its place has room for it, wherever there is such."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stripewise.cluster import Cluster, Network
from stripewise.layout import Layout, Region, target_bytes
from stripewise.store.substitute import on_active, without
from support import KIB, MIB, cluster, target

WIDTHS = st.lists(st.tuples(st.sampled_from(["hdd0", "hdd1", "ssd0", "ssd1"]), st.integers(1, 16)), min_size=1,
                  max_size=4, unique_by=lambda stripe: stripe[0])  # fmt: skip
ROOM = st.fixed_dictionaries({name: st.integers(0, 64) for name in ("hdd0", "hdd1", "ssd0", "ssd1")})


@given(WIDTHS, st.integers(0, 64), ROOM)
def test_what_has_no_room_gets_nothing_while_another_has_enough_for_all(widths, length, room):
    stripes = tuple((name, width * 4 * KIB) for name, width in widths)
    gone, free = stripes[0][0], {name: pages * 64 * KIB for name, pages in room.items()}
    before, on = dict(free), cluster(2, 2)
    left = Cluster(on.source, Network(), tuple(each for each in on.targets if each.name != gone))
    made = without(stripes, gone, length * 64 * KIB, left, free)
    assert made and gone not in dict(made)
    held, had = (target_bytes((Region(0, MIB, each),), length * 64 * KIB) for each in (made, stripes))
    more = {name: count - had.get(name, 0) for name, count in held.items()}
    if any(before[each.name] >= length * 64 * KIB and each.name not in dict(stripes) for each in left.targets):
        assert all(count <= before[name] for name, count in more.items())
    assert all(free[name] >= 0 for name in free)


def test_a_full_neighbour_is_not_given_what_lay_on_a_drained_target():
    """The file's other regions stay: an SSD is drained whose cycle names another one that is nearly full."""
    small = [target("ssd0", "ssd", 4 * MIB), target("ssd1", "ssd", 2 * MIB)]
    on = Cluster(cluster(2, 0).source, Network(), (*cluster(2, 0).targets, *small))
    gone = Cluster(on.source, Network(), (*on.targets[:3],))
    hot = Region(0, 2 * MIB, (("ssd0", 64 * KIB),))
    both = Region(2 * MIB, 3 * MIB, (("ssd0", 64 * KIB), ("ssd1", 64 * KIB)))
    last = Region(5 * MIB, MIB, (("hdd0", 64 * KIB),))
    free = {"hdd0": 99 * MIB, "hdd1": 98 * MIB, "ssd0": MIB // 2}
    made = without(both.stripes, "ssd1", both.len, gone, free)
    assert made == (("ssd0", 64 * KIB), ("hdd0", 64 * KIB)) and free["hdd0"] == 99 * MIB - 3 * MIB // 2
    whole = on_active(Layout((hot, both, last)), on, 6 * MIB, {})
    assert whole.regions == (hot, both, last)
