"""Tables and games."""


def border(rows):
    """The border of a table."""
    columns = sum(row[0] + row[-1] for row in rows)
    return sum(rows[0]) + sum(rows[-1]) + columns


def stair(rows):
    """The stair of a square table."""
    last = len(rows) - 1
    return sum((-1) ** place * row[last - place] for place, row in enumerate(rows))


def merge(first, second):
    """Two lists, merged."""
    shared = min(len(first), len(second))
    merged = [value for pair in zip(second, first) for value in pair]
    left = first[shared:] or second[shared:]
    return merged + left[::-1]


def points(games):
    """The points of a list of games."""
    total = 0
    for scored, conceded in games:
        if scored >= conceded:
            total += 3 if scored > conceded else 1
        elif conceded - scored > 2:
            total -= 1
    return total
