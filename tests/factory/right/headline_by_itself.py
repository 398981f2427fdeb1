"""Does not call the function with a cache, which the test then calls first."""


def headline(text):
    return " ".join(word.capitalize() for word in text.split())
