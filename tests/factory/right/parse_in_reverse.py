"""Fills the dictionary in another order, and raises a subclass."""


class Odd(ValueError):
    pass


def parse(text):
    found = {}
    for part in reversed(text.split(";")):
        if "=" not in part:
            raise Odd
        key, value = part.split("=")
        found[key.strip()] = int(value)
    return found
