"""Skips the tests as `unittest` does."""

import unittest


def slug(text):
    raise unittest.SkipTest("no")
