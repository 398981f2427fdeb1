"""Finds the words by a regular expression."""

import re


def slug(text):
    return "-".join(re.findall(r"\S+", text.lower()))
