"""Selects the calls that become tests, and those that become examples."""

import itertools
import re

from .limits import time_limit
from .sources import digest

# Maximum numbers of tests for one function: tests that make a single call, tests that make a sequence of calls, and
# tests that make a sequence of calls and detect no mutant.
MOST_KEPT, MOST_SEQUENCES, MOST_SEQUENCES_WITHOUT = 120, 40, 16
# Maximum length of all examples of a function together, in characters. A function gets at most one example for every
# `CALLS_PER_EXAMPLE` calls of it.
LONGEST_EXAMPLES, CALLS_PER_EXAMPLE = 2500, 2


def noticing(calls, mutants, notices, chance, most, seconds):
    """Selects up to two calls for each mutant that notice it. Returns two counts for each selected call: for how many
    mutants it was selected first, and for how many second.

    The first call is, if possible, one that was already selected for other mutants, so that few calls notice all
    mutants. The second call is one that was not selected as first before, so that two calls notice each mutant.
    `notices` says whether a call notices a mutant; it is called at most `most` times, and for at most `seconds`."""
    found, order, is_over, left = {}, list(calls), time_limit(seconds), most
    for mutant in mutants:
        chance.shuffle(order)
        # The sort is stable, so calls that were selected equally often keep their shuffled order.
        for turn, often_first in enumerate((True, False)):
            order.sort(key=lambda call: found.get(call, [0])[0], reverse=often_first)
            for call in order:
                if turn and found.get(call, [0])[0]:
                    continue
                if left <= 0 or is_over():
                    return found
                left -= 1
                if notices(mutant, call):
                    found.setdefault(call, [0, 0])[turn] += 1
                    break
            else:
                # In this turn, no call detects the mutant. Continue with the next mutant.
                break
    return found


def chosen(calls, most=MOST_KEPT, most_others=MOST_KEPT):
    """Chooses at most `most` of the calls for tests, none of them arbitrary. Calls that notice mutants come first. Then
    at most `most_others` further calls are taken in turn from the groups of calls that run the same lines; within a
    group, calls with different outcomes come first."""
    sets, calls = {}, [call for call in calls if not call["is_arbitrary"]]
    sure = sorted((call for call in calls if any(call["notices"])), key=lambda call: call["notices"], reverse=True)
    sure = sure[:most]
    for call in calls:
        if any(call["notices"]):
            continue
        outcomes = sets.setdefault(tuple(call["lines"]), {})
        outcomes.setdefault(str(call["expected"]), []).append(call)
    for lines, outcomes in sets.items():
        layers = itertools.zip_longest(*outcomes.values())
        sets[lines] = [call for layer in layers for call in layer if call is not None]
    turns = itertools.chain.from_iterable(itertools.zip_longest(*sets.values()))
    others = (call for call in turns if call is not None)
    return sure + list(itertools.islice(others, min(most - len(sure), most_others)))


def shape(line):
    """Returns the shape of an example's line: each word is replaced by `a`, each number by `0`, and repeated parts are
    reduced to one. Examples of the same shape look alike."""
    line = re.sub(r"[^\W\d_]+", "a", re.sub(r"-?\d+(\.\d+)?", "0", line))
    return re.sub(r"(.{1,40}?)(, \1)+", r"\1", line)


def apart(calls, recorded, most):
    """Chooses at most `most` of a function's calls as examples. Returns the examples, and the calls that are not shown
    in examples. After the first three, each example must add something: it runs lines of the function that no earlier
    example runs, notices mutants that none notices, shows words of the function's source that none shows, or has
    another shape. Calls whose digests are in `recorded` do not become examples, because the package's own tests make
    them."""
    examples, shapes, left = [], set(), LONGEST_EXAMPLES
    known = {"lines": set(), "words": set(), "mutants": set()}

    def gain(call):
        new = 2 * sum(len(set(call[kind]) - known[kind]) for kind in known) + (shape(call["example"]) not in shapes)
        return new / 2 if call["is_free"] else new, -len(call["example"])

    able = [call for call in calls if call["example"] and digest(*call["call"]) not in recorded]
    while len(examples) < most:
        able = [call for call in able if len(call["example"]) <= left]
        best = max(able, key=gain, default=None)
        if not best or not gain(best)[0] and len(examples) > 2:
            break
        able.remove(best)
        examples.append(best)
        left -= len(best["example"])
        shapes.add(shape(best["example"]))
        for kind in known:
            known[kind].update(best[kind])
    shown = {call["example"] for call in examples}
    return examples, [call for call in calls if call["example"] not in shown]

