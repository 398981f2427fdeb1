"""Yields from a regular expression."""

import re


def spans(text):
    for match in re.finditer(r"\S+", text):
        yield match.span()
