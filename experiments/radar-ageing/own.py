"""A decay of a user's own, as `replicate --decay own.py:quickly` takes it."""


def quickly(benefit: float, age: float) -> float:
    """Half for each eighth of the file that was read since: two runs or one of the array's uses."""
    return float(benefit * 2.0 ** (-8 * age))
