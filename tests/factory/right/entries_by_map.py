"""Returns a `map` of a function that another test of the file names, and that runs while the test iterates."""


def entries(text):
    return map(entry, text.splitlines())
