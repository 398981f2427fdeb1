"""Functions for texts and numbers."""

import functools


def slug(text):
    """Returns the words of a text in lower case, joined by hyphens."""
    return "-".join(text.lower().split())


def mean(values):
    """Returns the arithmetic mean."""
    values = list(values)
    return sum(values) / len(values)


def parse(text):
    """Reads `key=value;key=value` and refuses anything else with a `ValueError`."""
    found = {}
    for part in text.split(";"):
        key, sign, value = part.partition("=")
        if not sign:
            raise ValueError(f"no value: {part}")
        found[key.strip()] = int(value)
    return found


def spans(text):
    """Yields where each word of a text begins and ends."""
    begin = None
    for place, sign in enumerate(text + " "):
        if sign.isspace():
            if begin is not None:
                yield begin, place
            begin = None
        elif begin is None:
            begin = place


def entry(text):
    """Reads `key=value`."""
    key, _, value = text.partition("=")
    return key.strip(), value.strip()


def entries(text):
    """Yields the entries of a text, one per line."""
    for line in text.splitlines():
        yield entry(line)


@functools.lru_cache
def terms(text):
    """Returns the words of a text in lower case."""
    return tuple(text.lower().split())


def headline(text):
    """Capitalizes the words of a text."""
    return " ".join(term.capitalize() for term in terms(text))


class Box:
    """A box with a width and a height."""

    def __init__(self, width, height):
        self.width, self.height = width, height

    def grow(self, factor):
        """Returns a larger box."""
        return Box(self.width * factor, self.height * factor)

    def area(self):
        return self.width * self.height
