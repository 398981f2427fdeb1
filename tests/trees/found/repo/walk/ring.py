"""The ring and its walkers."""

import random


class Walker:
    """Somebody who walks."""

    def __init__(self, size, seed):
        self.size = size
        self.random = random.Random(seed)
        self.place = 0

    def walk(self, steps, right):
        """Walk some steps; ``right`` is the probability of a step to the right. Returns all places.

        The first place is counted, too.
        """
        places = [self.place]
        for _ in range(steps):
            direction = 1 if self.random.random() < right else -1
            self.place = (self.place + direction) % self.size
            places.append(self.place)
        return places

    def sprint(self, steps):
        """Never used by a command."""
        places = [self.place]
        for _ in range(steps):
            self.place = (self.place + 2) % self.size
            places.append(self.place)
        return places


def walks(count, size, steps, right, seed):
    all_walks = []
    for number in range(count):

        def start(offset):
            walker = Walker(size, seed + offset)
            walker.place = 0
            return walker

        all_walks.append(start(number).walk(steps, right))
    return all_walks
