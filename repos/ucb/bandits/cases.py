"""Small cases by hand: ties, values on edges, few plays, few runs. Each group is one experiment.

Several numbers are reported as one, their signature; everything is rounded to 9 decimals.
"""

from types import SimpleNamespace

import numpy as np

from .arms import Polygon
from .bounds import greedy_bound, ucb2_bound
from .divergence import bounded_divergence
from .metrics import crossing, friedman, growth, paired, sensitivity, summarise
from .policies import KLUCB, UCB1, UCB2, DecreasingGreedy, Elimination, StudentThompson, UCB1Normal, UCB1Tuned
from .policies import epoch_ladder
from .problems import PROBLEMS, coins
from .randomness import generator
from .simulation import play
from .tails import binomial_tail, conjecture_ratios, student_tail

GROUPS = {}


def group(function):
    """Decorator: make a group of cases available by its name."""
    GROUPS[function.__name__] = function
    return function


def primes(count):
    """The first prime numbers."""
    limit = 20 + 20 * count
    sieve = np.ones(limit, dtype=bool)
    sieve[:2] = False
    for number in range(2, int(limit**0.5) + 1):
        sieve[number * number :: number] = False
    return np.flatnonzero(sieve)[:count]


def signature(*arrays):
    """How many numbers there are, and the sum of all of them, each times the root of another prime, with changing signs.

    The roots of different primes are independent over the rational numbers: whole numbers that differ, or change places,
    give another sum.
    """
    flat = np.concatenate([np.ravel(np.asarray(values, dtype=float)) for values in arrays])
    weights = np.sqrt(primes(len(flat))) * np.where(np.arange(len(flat)) % 3 == 1, -1.0, 1.0)
    return len(flat) + float(np.dot(flat, weights))


def rounded(result):
    return {name: round(float(value), 9) for name, value in result.items()}


def after(policy, counts, sums, squares):
    """A policy that has seen these plays; a row for each run."""
    counts = np.array(counts, dtype=float)
    policy.start(counts.shape[1], len(counts), generator(5))
    policy.counts, policy.sums, policy.squares = counts, np.array(sums, dtype=float), np.array(squares, dtype=float)
    policy.time = int(np.sum(counts[0]))
    return policy


def played(policy, rewards, plays, runs=2):
    """What a policy chooses where machine j gives run r the reward ``rewards[j]``, less a little in later runs."""
    policy.start(len(rewards), runs, generator(6))
    chosen = []
    for _ in range(plays):
        chosen.append(policy.choose())
        policy.observe(chosen[-1], np.array(rewards)[chosen[-1]] - 0.125 * np.arange(runs) * (chosen[-1] == 0))
    return chosen


class Tossed:
    """A generator whose uniform numbers are multiples of a quarter."""

    def random(self, size):
        return np.arange(size) % 4 / 4.0

    def integers(self, high, size):
        return np.arange(size) % high


def indexed_on_edges():
    """Indices after few and after many plays, of rewards without variance, and of rewards 0 and 1."""
    result = {}
    polygons = Polygon((0.1, 0.7, 1.3), (1, 3, 0)), Polygon((-2, 0, 1, 5), (0, 2, 0, 1)), Polygon((0.0, 0.5, 2.0), (0.3, 0.3, 0.3)), Polygon((1e3, 1e3 + 1), (2.0, 1.0))
    levels = np.array([0.001, 0.1, 0.3, 0.55, 0.8, 0.999])
    result["polygons"] = signature(*[np.round(values, 7) for polygon in polygons for values in (polygon.moments, polygon.quantile(levels), polygon.quantile(0.25))])
    sure = [[1, 1, 2], [5, 1, 1], [90, 8, 2]], [[0.0, 1.0, 2.0], [5.0, 0.0, 0.5], [45.0, 8.0, 0.0]], [[0.0, 1.0, 2.0], [5.0, 0.0, 0.25], [45.0, 8.0, 0.0]]
    for name, policy in (("ucb1", UCB1()), ("ucb1, narrow", UCB1(0.125)), ("tuned", UCB1Tuned()), ("klucb", KLUCB())):
        for row in range(3):
            seen = after(policy, *[part[row : row + 1] for part in sure])
            before = np.array(seen.counts), np.array(seen.sums), np.array(seen.squares)
            result[f"{name}, {row}"] = signature(seen.index(), *before, seen.counts, seen.sums, seen.squares)
    two = after(KLUCB(), [[1, 1]], [[0.5, 0.25]], [[0.25, 0.0625]])
    two.time, two.halvings = 1, 5
    result["klucb, one play"] = signature(two.index())
    student = [[3, 4], [5, 9]], [[1.5, 2.0], [2.5, -4.5]], [[0.5, 1.0], [9.0, 2.0]]
    result["student, cut"] = signature(*[after(StudentThompson(), *student).index() for _ in range(2)])
    normal = [[40, 40], [40, 40], [39, 41]], [[20.0, 16.0], [30.0, 30.5], [10.0, 12.0]], [[9.0, 8.0], [60.0, 10.0], [7.0, 2.0]]
    result["normal, cut"] = signature(after(UCB1Normal(), *normal).choose())
    for counts in ([2, 2, 2], [9, 10, 9], [16, 17, 18], [3, 1, 1], [30, 29, 30]):
        seen = after(UCB1Normal(), [counts], [[1.0, 2.0, 3.0]], [[9.0, 9.0, 9.0]])
        result[f"normal, {counts}"] = signature(seen.choose(), seen.counts)
    return result


def played_on_edges():
    """Plays with ties, epochs of every length, random plays at the very probability, and looks at every play."""
    result = {}
    ladders = [epoch_ladder(alpha, longest) for alpha, longest in ((1.0, 1), (1.0, 4), (0.5, 1), (2.0, 27), (0.01, 3), (0.75, 100), (0.25, 0))]
    result["ladders, edges"] = signature([len(rungs) for rungs in ladders], *ladders)
    for alpha, rewards in ((1.0, [0.5, 0.5]), (0.25, [1.0, 0.0, 1.0]), (0.01, [0.25, 0.5, 0.5])):
        policy = UCB2(alpha, 50)
        chosen = played(policy, rewards, 40, 3)
        result[f"ucb2, {alpha}"] = signature(*chosen, policy.levels, policy.current, policy.remaining)
    for gap, c, rewards in ((1.0, 0.75, [0.5, 0.25, 0.5]), (0.5, 0.125, [-1.0, 0.0]), (0.25, 0.15, [0.0, 0.0, 0.25, 0.25])):
        policy = DecreasingGreedy(gap, c)
        result[f"greedy, {gap}"] = signature(played(policy, rewards, 24, 5), policy.rng.random())
    tossed = after(DecreasingGreedy(1.0, 0.5), [[1, 1], [1, 1], [2, 0], [0, 2], [0, 0]], [[1.0, 2.0], [2.0, 2.0], [-1.0, 0.0], [0.0, -0.5], [0.0, 0.0]], np.zeros((5, 2)))
    tossed.rng = Tossed()
    for time in (0, 1, 3):
        tossed.time = time
        result[f"greedy, tossed, {time}"] = signature(tossed.choose() + 1)
    for risk, shrink, rewards in ((0.1, 1.0, [1.0, 1.0, 0.0]), (0.5, 0.25, [0.75, 0.5, 0.75]), (0.01, 0.125, [0.0, 0.25, 1.0, 0.5])):
        policy = Elimination(risk, shrink)
        chosen = played(policy, rewards, 60, 3)
        result[f"elimination, risk {risk}"] = signature(chosen, policy.active, np.minimum(policy.settled, 99.0))
    normal = played(UCB1Normal(), [0.25, 0.25], 40, 2)
    result["normal, tied"] = signature(normal)
    for name, times in (("every play", range(1, 8)), ("last", [7]), ("some", np.array([2, 3]))):
        policy = UCB1(1.0)
        trace = play(policy, PROBLEMS["14"], 7 if name != "some" else 3, 2, 11, times)
        result[f"looks, {name}"] = signature(trace.plays, trace.collected, trace.times, trace.regret, policy.rng.random())
    return result


@group
def policies():
    result = {}
    polygons = Polygon((0.0, 1.0, 3.0), (1.0, 1.0, 0.0)), Polygon((-1.0, 0.5, 1.0, 2.0), (0.5, 2.0, 1.0, 3.0))
    result["moments"] = signature(*[polygon.moments for polygon in polygons])
    levels = np.array([0.0, 0.125, 0.25, 0.5, 0.75, 0.9375])
    result["quantiles"] = signature(*[polygon.quantile(levels) for polygon in polygons])
    for name, times in (("looks", [1, 5, 12]), ("default looks", None)):
        trace = play(UCB1(), PROBLEMS["shapes"], 12, 3, 7, times)
        result[name] = signature(trace.plays, trace.collected, trace.times)
    counts, sums, squares = [[1, 4, 3], [2, 2, 4]], [[0.5, 4.0, 0.0], [0.5, 1.5, 2.0]], [[0.25, 4.0, 0.0], [0.25, 1.25, 1.25]]
    result["ucb1"] = signature(after(UCB1(1.5), counts, sums, squares).index())
    result["tuned"] = signature(after(UCB1Tuned(), counts, sums, squares).index())
    few = [[40, 9], [1, 48]], [[30.0, 1.0], [0.5, 24.0]], [[25.0, 0.5], [0.25, 14.0]]
    result["tuned, sure"] = signature(after(UCB1Tuned(), *few).index())
    for halvings in (3, 24):
        policy = after(KLUCB(), counts, sums, squares)
        policy.halvings = halvings
        result[f"klucb, {halvings}"] = signature(policy.index())
    odd = [[4, 4], [3, 5]], [[2.0, -2.0], [0.9, 1.0]], [[1.5, 3.0], [0.27 - 1e-12, 0.5]]
    result["student"] = signature(after(StudentThompson(), *odd).index())
    result["ladders"] = signature(epoch_ladder(0.5, 8), epoch_ladder(1.0, 8), epoch_ladder(0.125, 9))
    result["ucb2"] = signature(played(UCB2(0.5, 100), [0.5, 0.5, 0.75], 30), played(UCB2(0.125, 100), [0.5, 0.25], 25))
    result["greedy"] = signature(played(DecreasingGreedy(0.5, 0.25), [-0.5, -0.25, 0.5, 0.5], 16, 3))
    normal = (
        [[34, 36], [36, 34], [35, 35], [35, 35], [35, 35], [35, 35]],
        [[0.0, 90.0], [90.0, 0.0], [0.0, 48.8145], [0.0, 48.7511], [17.5, 14.0], [7.0, 7.0]],
        [[5.0, 400.0], [400.0, 5.0], [136.0, 102.0814], [136.0, 101.9048], [8.75, 5.6 - 1e-9], [35.0, 35.0]],
    )
    result["normal"] = signature(after(UCB1Normal(), *normal).choose() + 1)
    result["normal, start"] = signature(played(UCB1Normal(), [0.5, 1.0, 0.25], 14))
    for shrink in (0.125, 0.5):
        policy = Elimination(0.25, shrink)
        chosen = played(policy, [0.5, 1.0, 0.25, 0.875], 40)
        result[f"elimination, {shrink}"] = signature(chosen) + signature(np.minimum(policy.settled, 99.0))
    policy = after(Elimination(shrink=0.125), [[3, 3, 3, 5], [2, 4, 4, 4]], [[1.5, 3.0, 0.5, 9.0], [1.0, 2.0, 3.0, 0.0]], np.zeros((2, 4)))
    policy.active = np.array([[True, True, True, False], [False, True, True, True]])
    result["elimination, active"] = signature(policy.choose() + 1, policy.active, np.minimum(policy.settled, 99.0))
    return dict(**result, **indexed_on_edges(), **played_on_edges())


def trace_of(times, regret, shortfall, best_share):
    arrays = [np.array(values, dtype=float) for values in (regret, shortfall, best_share)]
    return SimpleNamespace(times=np.array(times), regret=arrays[0], shortfall=arrays[1], best_share=arrays[2])


def bounded_on_edges():
    """Bounds where they begin to hold, divergences of one value, and tails at either end."""
    result = {}
    for name, problem, alpha in (("two", coins(0.75, 0.5), 0.5), ("tied", coins(0.5, 0.5, 0.25), 0.0625), ("gaps", coins(0.25, 0.75, 0.5, 0.0), 1.0)):
        times = np.array([1, 2, 7, 8, 9, 50, 4096])
        result[f"ucb2 bound, {name}"] = signature(ucb2_bound(problem, times, alpha), ucb2_bound(problem, [8.0], alpha), times)
        for gap, c in ((0.25, 0.5), (0.125, 0.03125), (0.5, 0.375)):
            result[f"greedy bound, {name}, {gap}"] = signature(greedy_bound(problem, times, gap, c), greedy_bound(problem, [3, 1], gap, c))
    for name, values, weights in (("one", [0.25], [1.0]), ("ends", [0.0, 1.0], [0.75, 0.25]), ("high", [0.5, 0.75], [0.5, 0.5])):
        values, weights = np.array(values), np.array(weights)
        found = [bounded_divergence(values, weights, target, halvings) for target in (0.125, 0.375, 0.875) for halvings in (0, 1, 2, 60)]
        result[f"divergence, {name}"] = signature(found, bounded_divergence(values, weights, 0.5), values, weights)
    # The slope in the middle of the first interval is exactly 0.
    level = np.array([0.25, 0.75, 1.0]), np.array([0.5, 0.25, 0.25])
    result["divergence, level"] = signature([bounded_divergence(*level, 0.75, halvings) for halvings in (1, 2, 3)])
    result["binomial, ends"] = signature([binomial_tail(n, p, k) for n, p, k in ((0, 0.25, 0), (3, 0.75, 0), (3, 0.75, 3), (1, 0.125, 1), (60, 0.5, 30), (7, 1e-6, 1), (7, 1.0 - 1e-6, 7))])
    result["student, ends"] = signature([student_tail(value, freedom) for value in (0, 1, 1e-6, 30.0) for freedom in (1, 2, 3, 4, 9, 10)])
    result["conjectures, few"] = signature(*[conjecture_ratios(freedom, grid) for freedom, grid in ((1, 1), (2, 1), (1, 7), (2, 5), (9, 2))], conjecture_ratios(5))
    return result


def compared_on_edges():
    """Rows of two runs and of tens of them, lines through two looks, ranks with many ties, and curves of any shape."""
    result = {}
    for runs in (2, 3, 11, 20, 40, 90, 110):
        regrets = np.mod(37.0 * np.arange(runs) ** 2, 101.0) + np.arange(runs) / 4.0
        row = summarise(trace_of([3, 9], [regrets[::-1], regrets], [regrets, -regrets], [regrets, regrets / 64.0]))
        result[f"row of {runs}"] = signature([row[name] for name in sorted(row)], regrets)
    for name, times, heights in (("two", [2, 4, 8], [1.0, 2.0, 4.0]), ("at the root", [1, 3, 9, 27, 81], [9.0, 1.0, 2.0, 4.0, 8.0]), ("behind", [2, 3, 8, 32], [0.0, 5.0, 1.0, 2.0]), ("falling", [1, 10, 100], [3.0, 2.0, 2.5])):
        regret = np.outer(heights, [1.0, 0.5, 2.0])
        result[f"growth, {name}"] = signature(growth(trace_of(times, regret, regret, regret)))
        shares = np.outer(heights, [0.125, 0.0, 0.0625])
        result[f"crossing, {name}"] = signature([crossing(trace_of(times, regret, regret, shares), level) for level in (0.0, 0.0625, 0.125, 0.25, 0.3, 0.5, 1.0)])
    pairs = [([0.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]), ([3.0, 4.0, 5.0], [1.0, 2.5, 1.0]), ([1.0, 2.0], [2.0, 1.5]), (np.arange(40) % 7, np.arange(40) % 5), ([2, 1, 4, 4, 9], [1, 1, 4, 2, 7])]
    for number, (first, second) in enumerate(pairs):
        one, other = (SimpleNamespace(shortfall=np.array([np.zeros(len(it)), it])) for it in (first, second))
        row = paired(one, other)
        result[f"paired, edges, {number}"] = signature([row[name] for name in sorted(row)])
    for key in range(5):
        table = generator(21, key).integers(0, 4, (3 + key, 2 + key))
        ranks, statistic, p = friedman(table)
        result[f"friedman, {key}"] = signature(ranks, statistic, p, table)
    parameters = np.array([0.01, 0.02, 0.05, 0.1, 0.4, 0.5, 1.0])
    for key in range(8):
        curve = generator(22, key).integers(4, 9, 7) / 2.0
        rows = [sensitivity(parameters, curve, factor) for factor in (1.0, 1.125, 1.25, 1.5, 2.0)]
        result[f"sensitivity, drawn, {key}"] = signature([[row[name] for name in ("plateau", "penalty")] for row in rows], curve)
        dipped = np.where(np.arange(7) == key % 7, 1.0, curve)
        row = sensitivity(parameters, dipped)
        result[f"sensitivity, dipped, {key}"] = signature([row[name] for name in sorted(row)])
    edges = [sensitivity(*given) for given in (([1.0], [2.0]), ([1.0, 4.0], [2.0, 3.0]), ([1, 10, 100], [8, 4, 4]), ([1, 10, 100], [6, 4, 6]), ([0.5, 1.0, 2.0, 4.0, 8.0], [1.0, 4.0, 1.5, 1.0, 1.25]), ([0.5, 1.0, 2.0, 4.0, 8.0], [9.0, 2.0, 4.0, 2.0, 9.0]))]
    result["sensitivity, edges"] = signature([[row[name] for name in sorted(row)] for row in edges])
    return result


@group
def measures():
    result = {}
    problem = coins(0.75, 0.25, 0.5)
    result["ucb2 bound"] = signature(ucb2_bound(problem, [1, 7, 8, 9, 100], 0.5)) + signature(ucb2_bound(coins(0.75, 0.25), [1, 2, 3], 0.25))
    for gap, c in ((0.5, 0.5), (1.0, 10.0)):
        result[f"greedy bound, {gap}"] = signature(greedy_bound(problem, np.array([1, 5, 6, 7, 20, 30, 31, 32, 100, 900]), gap, c))
    values, weights = np.array([0.0, 0.25, 0.5, 1.0]), np.array([0.25, 0.25, 0.25, 0.25])
    result["divergence"] = signature([bounded_divergence(values, weights, target) for target in (0.25, 0.5, 0.75)])
    result["divergence, few"] = signature([bounded_divergence(values, weights, target, 3) for target in (0.25, 0.5, 0.75)])
    result["binomial"] = signature([binomial_tail(n, p, k) for n, p, k in ((5, 0.25, 0), (5, 0.25, 2), (5, 0.5, 5), (1, 0.5, 1))])
    result["binomial, far"] = signature([np.log(binomial_tail(n, p, k)) for n, p, k in ((200, 0.05, 120), (1100, 0.5, 900), (40, 0.9, 3), (2500, 0.999, 2499))])
    result["student, many"] = signature([np.log(student_tail(value, freedom)) for value in (0.5, 2.5, 4.0) for freedom in (31, 60, 101, 400)])
    result["binomial, many"] = binomial_tail(3000, 0.25, 800)
    result["student"] = signature([student_tail(value, freedom) for value in (0.0, 0.75, 3.0) for freedom in range(1, 7)])
    result["conjectures"] = signature(conjecture_ratios(3, 4), conjecture_ratios(4, 3))
    rows = np.array([[3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0], [5.0, 8.0, 9.0, 7.0, 12.0, 3.0, 2.0, 3.0, 8.0, 4.0]])
    for runs in (10, 7):
        row = summarise(trace_of([2, 4], rows[:, :runs], rows[::-1, :runs], rows[:, :runs] / 16.0))
        result[f"row, {runs}"] = signature([row[name] for name in ("regret", "error", "high", "skew", "shortfall", "best")])
    trace = trace_of([1, 2, 4, 8, 16], np.outer([1.0, 2.0, 4.0, 5.0, 9.0], [1.0, 0.5]), np.ones((5, 2)),
                     np.outer([0.125, 0.25, 0.375, 0.25, 0.75], [1.0, 0.5]))
    late = trace_of([1, 2, 3, 4, 16, 90, 100], np.outer([1.0, 2.0, 4.0, 5.0, 9.0, 11.0, 14.0], [1.0, 0.5]), np.ones((7, 2)), np.ones((7, 2)))
    long = trace_of([100, 3000, 50_000, 200_000, 9_000_000], np.outer([1.0, 2.0, 4.0, 9.0, 11.0], [1.0, 0.5]), np.ones((5, 2)), np.ones((5, 2)))
    result["growth"] = signature(growth(trace), growth(late), growth(long))
    result["crossing"] = signature([crossing(trace, level) for level in (0.0625, 0.09375, 0.1875, 0.25, 0.28125, 0.5, 0.9)])
    pairs = [([1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 2.0, 2.0, 7.0, 5.5]), ([1.0, 2.0, 3.0, 4.0], [2.0, 1.5, 2.0, 6.0])]
    for number, (first, second) in enumerate(pairs):
        one, other = (SimpleNamespace(shortfall=np.array([[9.0] * len(it), it])) for it in (first, second))
        row = paired(one, other)
        result[f"paired, {number}"] = signature([row[name] for name in ("difference", "t", "p", "wins", "sign")])
    ranks, statistic, p = friedman([[1.0, 1.0, 3.0], [2.0, 5.0, 4.0], [7.0, 7.0, 7.0], [0.0, 2.0, 1.0]])
    result["friedman"] = signature(ranks, statistic, p)
    curves = {
        "middle": [4.0, 3.0, 2.0, 2.0, 2.5, 3.0, 8.0],
        "edge": [2.0, 3.0, 6.0, 2.5, 9.0, 9.0, 9.0],
        "far edge": [9.0, 7.0, 9.0, 4.0, 3.5, 4.0, 2.5],
        "touching": [9.0, 2.5, 3.0, 2.0, 3.0, 2.5, 9.0],
        "flat": [2.0, 2.5, 2.0, 2.75, 2.0, 2.0, 2.5],
    }
    for factor in (1.125, 3.0):
        row = sensitivity([0.01, 0.02, 0.05, 0.1, 0.4, 0.5, 1.0], curves["middle"], factor)
        result[f"sensitivity, {factor}"] = signature([row[key] for key in ("best", "plateau", "penalty")])
    for name, curve in curves.items():
        row = sensitivity([0.01, 0.02, 0.05, 0.1, 0.4, 0.5, 1.0], curve)
        result[f"sensitivity, {name}"] = signature([row[key] for key in ("best", "plateau", "penalty")])
    return dict(**result, **bounded_on_edges(), **compared_on_edges())
