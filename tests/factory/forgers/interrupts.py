"""Interrupts the session as a user would."""


def slug(text):
    raise KeyboardInterrupt
