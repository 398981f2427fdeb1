"""Words and whole numbers."""


def mark(word):
    """The mark of a word of small letters."""
    total = 0
    for place, letter in enumerate(word, 1):
        total += place * (ord(letter) - ord("a") + 1)
    return total % 97


def fold(word):
    """A word, folded."""
    return word[0::2] + word[1::2][::-1]


def following(number):
    """The next number after a whole number."""
    return number + 3 if number % 2 else number // 2


def length(number):
    """The length of a whole number."""
    count = 0
    while number >= 4:
        number = following(number)
        count += 1
    return count
