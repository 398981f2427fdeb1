"""``python -m conventions EXPERIMENT --size N``: prints its numbers as JSON."""

import argparse
import json

from . import lists, tables, words


def sample(size, start):
    """Whole numbers from 0 to 96, from a linear congruential generator."""
    values, state = [], start
    for _ in range(size):
        state = (1103515245 * state + 12345) % 2**31
        values.append((state >> 16) % 97)
    return values


def word(size, start):
    return "".join(chr(ord("a") + value % 26) for value in sample(size, start))


def weigh(values):
    """Every place counts in it."""
    return sum((place % 7 + 1) * value for place, value in enumerate(values))


def levels(size):
    values = [1.0 + value / 8.0 for value in sample(size, 1)]
    above = lists.rest(values, values[3])
    return {
        "level": lists.level(values),
        "swing": lists.swing(values),
        "tilt": lists.tilt(values),
        "many": len(above),
        "rest": weigh(above),
    }


def spelling(size):
    folded = words.fold(word(size + 1, 2))
    return {
        "short": words.mark("abc"),
        "mark": words.mark(word(size, 3)),
        "fold": weigh([ord(letter) - ord("a") for letter in folded]),
        "even": weigh([ord(letter) - ord("a") for letter in words.fold(word(size, 4))]),
    }


def numbers(size):
    some = [3 * value + 5 for value in sample(size, 5)]
    return {
        "next": weigh([words.following(number) for number in some]),
        "length": weigh([words.length(number) for number in some]),
        "small": words.length(3),
        "least": words.length(4),
    }


def games(size):
    rows = [sample(6, start) for start in range(size, size + 6)]
    first, second = sample(size, 6), sample(size + 5, 7)
    played = [(value % 6, other % 6) for value, other in zip(first, second)]
    return {
        "border": tables.border(rows),
        "stair": 1000 + tables.stair(rows),
        "longer": weigh(tables.merge(first, second)),
        "shorter": weigh(tables.merge(second, first)),
        "points": tables.points(played),
        "lost": 10 + tables.points([(0, 3), (0, 2), (1, 1)]),
    }


def main():
    experiments = {function.__name__: function for function in (levels, spelling, numbers, games)}
    parser = argparse.ArgumentParser(prog="conventions")
    parser.add_argument("experiment", choices=experiments)
    parser.add_argument("--size", type=int, default=100)
    options = parser.parse_args()
    print(json.dumps(experiments[options.experiment](options.size)))


if __name__ == "__main__":
    main()
