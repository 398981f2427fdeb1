"""Figures of a list of whole numbers."""


def count(values):
    """Number of values."""
    return len(values)


def total(values):
    """Sum of values."""
    result = 0
    for value in values:
        result += value
    return result


def mean(values):
    """Mean of values."""
    return total(values) / count(values)


def spread(values):
    """Mean squared distance from the mean."""
    center = mean(values)
    return mean([(value - center) ** 2 for value in values])


def largest(values):
    """The largest value."""
    return max(values)


def smallest(values):
    """The smallest value."""
    return min(values)


def middle(values):
    """The upper median."""
    return sorted(values)[len(values) // 2]


def squares(values):
    """The squares."""
    return [value * value for value in values]


def running(values):
    """Running sums."""
    sums = []
    for value in values:
        sums.append((sums[-1] if sums else 0) + value)
    return sums


def gaps(values):
    """Differences of neighbours."""
    return [after - before for before, after in zip(values, values[1:])]


def ranks(values):
    """Place of each value among the sorted ones."""
    order = sorted(values)
    return [order.index(value) for value in values]


def shifted(values):
    """Values less their smallest."""
    least = smallest(values)
    return [value - least for value in values]


def scaled(values):
    """Values in parts of their largest."""
    most = largest(values)
    return [value / most for value in values]


def ratio(values):
    """Largest over smallest."""
    return largest(values) / smallest(values)


def signs(values):
    """Signs."""
    return [(value > 0) - (value < 0) for value in values]


def pairs(values):
    """Products of neighbours."""
    products = []
    place = 1
    while place < len(values):
        products.append(values[place - 1] * values[place])
        place = place + 1
    return products


def digits(values):
    """Sum of all decimal digits."""
    return sum(int(digit) for value in values for digit in str(value) if digit.isdigit())


def mirror(values):
    """Values and their mirror image."""
    return list(values) + list(values)[::-1]


def parity(values):
    """Number of odd values."""
    return len([value for value in values if value % 2])


def weight(values):
    """Values times their places."""
    return total([place * value for place, value in enumerate(values)])
