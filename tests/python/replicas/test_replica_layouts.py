"""The layout of each strided set of a replica: the part of the replica's own layout that begins with its first byte."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stripewise.layout import Layout, Region
from stripewise.store.copies.build import layout_from

G = 4096


@st.composite
def layouts(draw):
    """A few regions with cycles of their own, whose lengths need not be whole cycles."""
    regions, end = [], 0
    for _ in range(draw(st.integers(1, 3))):
        names = draw(st.permutations("abc"))[: draw(st.integers(1, 3))]
        length = draw(st.integers(1, 9)) * G
        regions.append(Region(end, length, tuple((name, draw(st.integers(1, 3)) * G) for name in names)))
        end += length
    return Layout(tuple(regions))


def target(layout, at):
    """The target of a byte, and whether it is the first of its stripe."""
    last = layout.regions[-1]
    if at >= last.start + last.len:
        at = last.start + (at - last.start) % last.len
    region = next(each for each in layout.regions if at < each.start + each.len)
    at = (at - region.start) % sum(width for _, width in region.stripes)
    for name, width in region.stripes:
        if at < width:
            return name, at == 0
        at -= width
    raise AssertionError


@given(layouts(), st.integers(0, 60))
def test_from_the_first_byte_of_a_stripe_on_each_byte_has_its_target(layout, granule):
    start = granule * G
    while not target(layout, start)[1]:
        start -= G
    part = layout_from(layout, start)
    assert part.regions[0].start == 0
    for one, other in zip(part.regions, part.regions[1:], strict=False):
        assert one.start + one.len == other.start
    assert [target(part, k * G)[0] for k in range(80)] == [target(layout, start + k * G)[0] for k in range(80)]


@given(layouts(), st.integers(0, 60 * G))
def test_within_a_stripe_it_begins_with_the_whole_of_it(layout, start):
    part = layout_from(layout, start)
    assert target(part, 0)[0] == target(layout, start)[0]
    assert all(region.len % G == 0 and region.len > 0 for region in part.regions)
