"""Goes through the characters."""


def slug(text):
    words, word = [], ""
    for sign in text + " ":
        if sign.isspace():
            words += [word] if word else []
            word = ""
        else:
            word += sign.lower()
    return "-".join(words)
