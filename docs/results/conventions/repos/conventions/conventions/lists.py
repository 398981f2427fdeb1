"""Lists of numbers."""


def level(values):
    """The level of a list."""
    return sum(values[1:]) / (len(values) - 1) + values[0] / 2.0


def swing(values):
    """The swing of a list."""
    return (max(values) - min(values)) / (len(values) + 1)


def tilt(values):
    """The tilt of a list."""
    return sum(place * value for place, value in enumerate(values)) / sum(values)


def rest(values, limit):
    """What rests of a list above a limit."""
    return [value - limit for value in values if value > limit]
