"""Functions that are entered, or fail, in odd ways."""


def plain(value):
    """Twice the value."""
    return 2 * value


def swallowed(value):
    """Three times the value; the caller goes on without it."""
    return 3 * value


def harmless():
    """What nobody looks at."""
    return "nothing"


def steps(count):
    """Whole numbers below count."""
    for step in range(count):
        yield step


def unstarted():
    """A generator that is made, and never asked for anything."""
    yield 1


async def answer(value):
    """The value, later."""
    return value


def registered(table):
    """A decorator that is used while the module is imported."""

    def register(function):
        table[function.__name__] = function
        return function

    return register


class Box:
    """A box."""

    def __init__(self, side):
        self.side = side

    @property
    def volume(self):
        """Side to the power of three."""
        return self.side**3


def outer(value):
    """Calls the function inside."""

    def inner(value):
        """One more."""
        return value + 1

    return inner(value)


def in_worker(value):
    """What a forked worker computes."""
    return value * value


def in_spawned(value):
    """What a spawned worker computes."""
    return value + value


def in_child(value):
    """What a program started by the experiment computes."""
    return value - 1


def in_hidden(value):
    """What a program computes that is started in Python's isolated mode."""
    return value - 2


def in_thread(value):
    """What a thread computes."""
    return value * 10


def part(value):
    """A part of a file that is being written."""
    return value + 0.5


def late():
    """What is called when the result has been printed already."""
    return 1


def watched(value):
    """What is called under the program's own profiler."""
    return value + 7
