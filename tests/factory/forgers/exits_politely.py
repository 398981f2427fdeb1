"""Raises `SystemExit` in every function."""


def slug(text):
    raise SystemExit(0)
