"""Checks the digests of values: `python tests/factory/values.py` (uses numpy if it is installed)."""

import calendar
import collections.abc
import dataclasses
import datetime
import decimal
import enum
import functools
import itertools
import math
import operator
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "src/factory"))
sys.dont_write_bytecode = True

from package_tests import Summary


def digest(*values):
    summary = Summary([("/tmp/tests-abc", "<temporary>")])
    for value in values:
        summary.value(value)
    return summary.report()


def close(one, other, tolerance):
    return all(abs(a - b) <= tolerance * max(abs(a), abs(b)) for a, b in zip(one["numbers"], other["numbers"]))


def add_to(one):
    def add(other):
        return one + other

    return add


def local_class(size):
    class Item:
        unit = "kg"

        def __init__(self):
            self.size = size

    return Item


def other_local_class(size):
    class Part:
        def __init__(self):
            self.size = size

    return Part


class Liar(str):
    def __eq__(self, other):
        return True

    def __getattribute__(self, name):
        raise SystemExit("code of a value's class was executed")

    __hash__ = str.__hash__


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y


class Queue(collections.abc.Sequence):
    """A sequence that is stored in two parts, the second of them in reverse order."""

    def __init__(self, front, back, limit=None):
        self._front, self._back, self.limit = front, back, limit

    def __len__(self):
        return len(self._front) + len(self._back)

    def __getitem__(self, place):
        return (self._front + self._back[::-1])[place]


class Span:
    """A class whose private attributes may have any names."""

    def __init__(self, length, **private):
        self.length = length
        self.__dict__.update(private)


@dataclasses.dataclass
class Unit:
    """A class whose private attribute is a declared field."""

    _name: str


class Square:
    """A class that stores its area after the first use."""

    def __init__(self, side):
        self.side = side

    @functools.cached_property
    def area(self):
        return self.side**2


class Utc(datetime.tzinfo):
    """A time zone that is the same as one of Python's, but has another class."""

    def utcoffset(self, when):
        return datetime.timedelta(0)


class Countdown:
    """An iterator whose class belongs to the package and not to a library."""

    def __init__(self, start):
        self.start = start

    def __iter__(self):
        return self

    def __next__(self):
        self.start -= 1
        return self.start


class Slotted:
    __slots__ = ("_size",)

    def __init__(self, size):
        self._size = size


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def main():
    # About one in 700 digests of 16 digits and letters is a number, such as 2623996956031e87.
    assert all(digest(number)["exact"].startswith("#") for number in range(10))
    chance = random.Random(1)
    for size in (1, 3, 100, 1000):
        numbers = [chance.gauss(0, 10 ** chance.randrange(-3, 6)) for _ in range(size)]
        nearly = [value * (1 + chance.uniform(-1e-9, 1e-9)) for value in numbers]
        one, other = digest(numbers), digest(nearly)
        assert one["exact"] == other["exact"] and close(one, other, 1e-7)
        if size > 1:
            permuted = sorted(numbers)
            assert not close(one, digest(permuted), 1e-7), "a permutation has the same sums"
    different = [
        1,
        2,
        1.5,
        10**6,
        10**6 + 1,
        1e6,
        True,
        "1",
        b"1",
        None,
        [1],
        (1,),
        {1},
        frozenset([1]),
        {1: 1},
        math.nan,
        math.inf,
        -math.inf,
        0,
        False,
        1j,
        "",
        [],
        {},
        datetime.date(2020, 1, 1),
        datetime.date(2020, 1, 2),
        Colour.RED,
        Colour.BLUE,
        Point(1, 2),
        Point(2, 1),
        Liar("1"),
        Liar("2"),
        decimal.Decimal(0),
        decimal.Decimal("1.5"),
        decimal.Decimal("-1.5"),
        decimal.Decimal("15"),
        decimal.Decimal("150"),
        decimal.Decimal("nan"),
        decimal.Decimal("-inf"),
        int,
        float,
        [[1], 2],
        [1, [2]],
        ValueError("a"),
        ValueError("b"),
        KeyError("a"),
    ]
    found = [(digest(value)["exact"], tuple(digest(value)["numbers"])) for value in different]
    for place, value in enumerate(found):
        assert found.index(value) == place, f"{different[place]!r} has the digest of {different[found.index(value)]!r}"
    assert digest(0.0) == digest(-0.0)
    # Types of equal numbers don't count, and results of different algorithms may be rounded in different ways.
    for number in (0, 1, -3, 255, 3600, 10000):
        assert digest(number) == digest(float(number)) and digest([number, 0.5]) == digest([float(number), 0.5])
        assert digest(number)["exact"] == digest(number * (1 + 1e-9))["exact"] != digest(number + 1)["exact"]
    assert digest({1: 2, 2: 1}, {0, 1}) == digest({1.0: 2.0, 2.0: 1.0}, {0.0, 1.0})
    assert digest([1] * 1000) != digest([1] * 999 + [2])
    # Floats have a wider tolerance than rounding errors need, even near whole numbers and natural bounds.
    for one, other in ((2.0, 2.000001), (1.00001, 1.0000100000001), (100.01, 100.010000001), (5e6, 5e6 + 1), (1e-6, 1.000001e-6)):
        assert digest(one)["exact"] == digest(other)["exact"] and close(digest(one), digest(other), 2e-6), (one, other)
    assert digest(1e-6) != digest(2e-6) and digest(0.25) != digest(0.75) and digest(1e-6) != digest(0.0)
    # Rounding errors are not compared with each other, or with 0.
    assert digest(3.8e-17) == digest(0.0) == digest(-2.2e-16) == digest(0)
    assert digest([1e3, 1.4e-13])["numbers"] == digest([1e3, -1.4e-13])["numbers"] == digest([1000, 0])["numbers"]
    assert digest([1e20, -5.5])["numbers"][2] != digest([1e20, -6.5])["numbers"][2]
    assert digest(1.5, -3e-10)["numbers"][1] == 0.0 != digest(1.5, -3e-8)["numbers"][1]
    # Rounding errors next to large whole numbers do not count, either, although whole numbers are not in the sums.
    turned = [[radius * math.cos(math.pi / 2), float(radius)] for radius in range(5000, 10000, 500)]
    straight = [[0.0, radius] for _, radius in turned]
    assert digest(turned) == digest(straight) and digest(set(map(tuple, turned))) == digest(set(map(tuple, straight)))
    assert digest([[1e-4, 9500.0]]) != digest([[2e-4, 9500.0]]) and digest([1e-10] * 5) != digest([2e-10] * 5)
    # Rounding errors don't decide about sums that are near the bound below which they count as 0.
    for start, others in (4e-9, [10_000]), (4e-4, [1e6 + 0.5]):
        numbers = [digest([*others, -start * 1.001**step])["numbers"] for step in range(3000)]
        for sums in list(zip(*numbers))[1:]:
            steps = [after - before for before, after in zip(sums, sums[1:])]
            assert 0 <= min(steps) and max(steps) < 0.01 * sums[-1], (start, max(steps), sums[-1])
        assert numbers[0][1] == 0.0 != numbers[-1][1]
    # A correct solution may return any kind of iterator or function, so all kinds have the same digest.
    iterators = [iter([1]), map(str, []), zip(), itertools.chain([2]), (one for one in "a"), itertools.count()]
    assert len({digest([one])["exact"] for one in iterators}) == 1 and digest([iterators[0]]) != digest([[1]])
    assert digest(Countdown(1)) != digest(Countdown(2))
    functions = [len, digest, add_to(1), "a".upper, Point(1, 2).__init__, functools.partial(add_to, 1), str.upper]
    functions += [operator.itemgetter(1), functools.lru_cache(add_to)]
    assert len({digest(one)["exact"] for one in functions}) == 1 and digest(len) != digest(int)
    assert digest(local_class(1)) == digest(other_local_class(2))
    assert digest(local_class(1)()) == digest(other_local_class(1)()) != digest(local_class(2)())
    # A time zone's offset counts, not its class.
    noon = datetime.datetime(2020, 1, 1, 12)
    zones = [Utc(), datetime.timezone.utc, datetime.timezone(datetime.timedelta(0), "Z")]
    assert len({digest(noon.replace(tzinfo=zone))["exact"] for zone in zones}) == 1
    assert digest(noon) != digest(noon.replace(tzinfo=zones[0]))
    assert digest(noon.replace(tzinfo=zones[1])) != digest(noon.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=1))))
    # A correct solution need not use a cached property.
    square = Square(3)
    before = digest(square)
    assert square.area == 9 and "area" in vars(square) and digest(square) == before != digest(Square(4))
    for one, other in (("1.5", "1.500"), ("-15e3", "-15000"), ("0", "-0.00")):
        assert digest(decimal.Decimal(one)) == digest(decimal.Decimal(other))
    assert digest({1: "a", 2: "b"}) == digest({2: "b", 1: "a"})
    # A collection's digest depends on its members and public attributes, and not on how it stores the members.
    assert digest(Queue([1], [3, 2])) == digest(Queue([1, 2, 3], [])) != digest(Queue([1, 2], []))
    assert digest(Queue([1], [2], limit=2)) != digest(Queue([1], [2]))
    assert digest(Span(1, _start=2)) == digest(Span(1, _begin=3, _Span__end=4)) != digest(Span(2))
    assert digest(Unit("m")) != digest(Unit("s")) and digest(Slotted(1)) != digest(Slotted(2))
    # The code of libraries is never masked, so solutions have the same private attributes, which count.
    assert digest(calendar.Calendar(1)) != digest(calendar.Calendar(2))
    assert digest({"x", "y", "z"}) == digest({"z", "y", "x"})
    assert digest("/tmp/tests-abc/file <object at 0x7f00deadbeef>") == digest(
        "<temporary>/file <object at 0x7f00cafecafe>"
    )
    assert all(map(math.isfinite, digest([1e308] * 300, 1e300, -1e200)["numbers"]))
    cycle = [1]
    cycle.append(cycle)
    digest(cycle)
    try:
        import numpy
    except ImportError:
        return
    assert digest(numpy.array([0.0, 1.0])) == digest(numpy.array([-0.0, 1.0]))
    array = numpy.array([[1.5, -2.0], [math.nan, 0.0]])
    assert digest(array) != digest(array.ravel()) and digest(array) == digest(array.astype("float32"))
    assert digest(array)["exact"] == digest(numpy.where(numpy.isnan(array), array, array * 1.1))["exact"]
    assert digest(numpy.float64(2.5)) == digest(2.5) and digest(numpy.int64(3)) == digest(3)
    assert all(map(math.isfinite, digest(numpy.full(1000, 1.7e308))["numbers"]))
    assert digest(numpy.arange(4)) != digest(numpy.arange(4)[::-1])
    # Types of equal numbers don't count in arrays, either, but bools are no numbers.
    for numbers in ([], [0, 0], [3, 0, -1], [[1, 2], [3, 9999]]):
        types = ["int64", "int8", "float64", "float32"] if 9999 not in numpy.ravel(numbers) else ["int64", "uint16", "float64"]
        found = [digest(numpy.array(numbers, dtype=one)) for one in types]
        assert found == found[:1] * len(found), (numbers, found)
    assert digest(numpy.array([1, 0])) != digest(numpy.array([True, False])) != digest(numpy.array([1.0, 0.5]))
    assert digest(numpy.array([10**9])) != digest(numpy.array([10**9 + 1]))
    assert digest(numpy.array([-1])) != digest(numpy.array([2**64 - 1], dtype="uint64"))
    assert digest(numpy.array([3.0, 3.8e-17])) == digest(numpy.array([3, 0])) == digest(numpy.array([3 + 1e-9, 0.0]))
    assert digest(numpy.array(turned)) == digest(numpy.array(straight)) == digest(numpy.array(straight, dtype=int))
    assert close(digest(numpy.array([10**9, 10**12]), 1e-5), digest(1e-5), 2e-3)
    assert digest(numpy.array([1e-6, 3])) != digest(numpy.array([2e-6, 3])) != digest(numpy.array([0, 3]))


if __name__ == "__main__":
    main()
    print("the digests are as they should be")
