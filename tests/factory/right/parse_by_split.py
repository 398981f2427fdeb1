"""Splits at the sign, and lets the unpacking raise."""


def parse(text):
    pairs = [part.split("=", 1) for part in text.split(";")]
    return {key.strip(): int(value) for key, value in pairs}
