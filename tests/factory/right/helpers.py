"""Uses functions of its own."""


def _words(text):
    yield from text.split()


def slug(text):
    return "-".join(word.lower() for word in _words(text))
