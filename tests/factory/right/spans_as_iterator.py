"""Returns an iterator over a list, not a generator."""

import re


def spans(text):
    return iter([match.span() for match in re.finditer(r"\S+", text)])
