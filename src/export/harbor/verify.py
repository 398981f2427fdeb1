"""Scores an attempt against gold: the results that it reports, and the results of its code when it is run again here.

Runs in a separate environment, which contains a copy of the agent's workspace. The attempt's changes are applied to a
fresh copy of the masked repo, except changes to protected files and new files that Python would import in place of
other modules. Experiments run as a user who can neither read the gold results nor write the reward.
"""

import functools
import json
import math
import os
import re
import shutil
import signal
import stat
import sys
import sysconfig
import time
from pathlib import Path

import measure
from tolerance import is_close

# Id of the user that runs the experiments; it depends on the process id, so that verifications get different users.
USER = 20000 + os.getpid() % 10000
# Suffixes of files that Python can import.
CODE = (".py", ".so", ".pyc")
# Names of folders whose imports are ignored, because no experiment runs the code in them.
ASIDE = {"test", "tests", "testing", "docs", "examples", "idlelib", "__pycache__"}
# Names of files from which pytest reads its configuration or its plugins.
PYTEST_FILES = {
    "conftest.py",
    "pytest.toml",
    ".pytest.toml",
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
}
# Endings of names of folders that describe an installed package, and may name plugins that pytest loads.
METADATA_FOLDERS = (".egg-info", ".dist-info")
TASK_FILES = {"paper.txt", "experiments.md", "run_experiments.sh", "answer.json"}
# Largest number by which a key of an answer can refer to an experiment.
MOST_NUMBER = 2**32 - 1


def number(value):
    """Returns a finite number, given as a number or as a string; None for other values."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        if "_" in value:
            return None
        try:
            value = float(value)
        except ValueError:
            return None
    if not isinstance(value, (int, float)):
        return None
    try:
        value = float(value)
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


def marked(gold):
    """Returns NaN or an infinity if gold is its name, as JSON has no such numbers; None for other values."""
    return float(gold) if gold in ("NaN", "Infinity", "-Infinity") else None


def equals(expected, got):
    """Whether a value, given as a number or as a string, is the same as `expected`, which is NaN or an infinity."""
    try:
        found = float(got) if isinstance(got, (str, float)) else 0.0
    except ValueError:
        return False
    return found == expected or (math.isnan(found) and math.isnan(expected))


def unwrapped(got):
    """Parses an object or list in a string, which some agents send instead of a nested result."""
    if not isinstance(got, str):
        return got
    try:
        value = measure.read_json(got)
    except ValueError:
        return got
    return value if isinstance(value, (dict, list)) else got


def agrees(gold, got, tolerance):
    """Whether every value of gold has a counterpart in `got` that is within tolerance."""
    if isinstance(gold, (dict, list)):
        got = unwrapped(got)
    if isinstance(gold, dict):
        return isinstance(got, dict) and all(key in got and agrees(gold[key], got[key], tolerance) for key in gold)
    if isinstance(gold, list):
        same = isinstance(got, list) and len(got) == len(gold)
        return same and all(agrees(one, other, tolerance) for one, other in zip(gold, got))
    if isinstance(gold, str) and marked(gold) is not None:
        return equals(marked(gold), got)
    if not is_number(gold):
        return type(gold) is type(got) and gold == got
    found = number(got)
    return found is not None and is_close(gold, found, tolerance)


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def numbers(gold, got):
    """Returns the numbers in `got` at the positions of gold's numbers; None if anything but the numbers differs."""
    if isinstance(gold, (dict, list)):
        got = unwrapped(got)
        keys = gold.keys() if isinstance(gold, dict) else range(len(gold))
        if type(got) is not type(gold) or (isinstance(gold, list) and len(got) != len(gold)):
            return None
        if isinstance(gold, dict) and not all(key in got for key in keys):
            return None
        below = [numbers(gold[key], got[key]) for key in keys]
        return None if None in below else [one for part in below for one in part]
    if isinstance(gold, str) and marked(gold) is not None:
        return [] if equals(marked(gold), got) else None
    if is_number(gold):
        found = number(got)
        return None if found is None else [found]
    return [] if type(gold) is type(got) and gold == got else None


class Random:
    """Random numbers for the assignments of draws to groups. The seed is fixed, so the numbers are always the same."""

    def __init__(self):
        self.state = 1

    def next(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 11) / 2**53


def middle(values):
    values = sorted(values)
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2.0


def total(values):
    """Returns the sum from left to right, as AutoExperiment computes it; Python's `sum` may round differently."""
    result = 0.0
    for value in values:
        result += value
    return result


def bounded(values):
    """Returns values of which none is so large that a difference of two is infinite."""
    return [min(max(value, -1e300), 1e300) for value in values]


def centred(values):
    """Returns the distances of values from their median, negative for values below it."""
    centre = middle(values)
    return [value - centre for value in values]


def standard_units(values, furthest, rounding):
    """Returns distances from the median in standard deviations, far values moved closer; zeros if all are equal."""
    values = bounded(values)
    from_median = centred(values)
    far, sizes = list(map(abs, from_median)), list(map(abs, values))
    reach = max(far)
    if reach <= rounding * max(sizes):
        return [0.0] * len(values)
    # If most values are equal, the others say how far values usually are from the median.
    equal = rounding * middle(sizes)
    if middle(far) <= equal:
        far = [distance for distance in far if distance > equal]
    most = min(furthest * 1.4826 * middle(far), reach)
    near = [min(max(distance / most, -1.0), 1.0) for distance in from_median]
    mean = total(near) / len(near)
    deviation = math.sqrt(total((value - mean) ** 2 for value in near) / len(near))
    return [value / deviation for value in near]


def is_one_against_all(pool):
    """Whether a single draw is compared with all others."""
    draws, first, second = pool
    return first == 1 and first + second == len(draws)


def columns(pool, furthest, rounding):
    """Returns the values in standard deviations and, if several draws are judged, their distances from the median."""
    draws, first, _ = pool
    limit = math.inf if is_one_against_all(pool) else furthest
    values = [bounded(column) for column in zip(*draws)]
    found = [standard_units(column, limit, rounding) for column in values]
    if first > 1:
        found += [standard_units(list(map(abs, centred(column))), 2.0 * limit, rounding) for column in values]
    return found


def assigned(pool, count, random):
    """Returns `count` assignments of draws to groups: lists of the draws in the first group, then in the second one.

    The second group is left out if it consists of all other draws. If a single draw is compared with all others, all
    draws take turns; otherwise, the assignments are random.
    """
    draws, first, second = pool
    if is_one_against_all(pool):
        return [[turn % len(draws)] for turn in range(count)]
    size = first if first + second == len(draws) else first + second
    order, found = list(range(len(draws))), []
    for _ in range(count):
        for place in range(size):
            other = place + int(random.next() * (len(draws) - place))
            order[place], order[other] = order[other], order[place]
        found.append(order[:size])
    return found


def statistics(column, pool, assignments, settings):
    """Returns the distance between the groups' means of one value as observed, and those of the assignments.

    If several draws are judged, all are divided by the root mean square of the largest distances. Otherwise, a value
    with an extreme draw would have far larger distances than the other values, and would hide their deviations.
    """
    _, first, second = pool
    whole = total(column)

    def distance(chosen):
        one = total(column[place] for place in chosen[:first])
        other = whole - one if len(chosen) == first else total(column[place] for place in chosen[first:])
        return abs(one / first - other / second)

    observed, found = distance(range(len(assignments[0]))), [distance(chosen) for chosen in assignments]
    largest = sorted(found)[int(settings["usual"] * len(found)) :]
    large = math.sqrt(total(one * one for one in largest) / len(largest)) if first > 1 else 0.0
    return (observed / large, [one / large for one in found]) if large > 0.0 else (observed, found)


def least_p(pools, furthest, settings):
    """Returns the smallest p of any value in a permutation test of all pools together (single-step max-T).

    A pool consists of its draws, the size of the judged group, which comes first among the draws, and the size of the
    group with which it is compared, which comes second. Pools with the same sizes share their assignments.
    """
    random, shared, most, largest = Random(), {}, 0.0, [0.0] * settings["assignments"]
    for pool in pools:
        sizes = len(pool[0]), pool[1], pool[2]
        if sizes not in shared:
            shared[sizes] = assigned(pool, settings["assignments"], random)
        for column in columns(pool, furthest, settings["rounding"]):
            observed, found = statistics(column, pool, shared[sizes], settings)
            most, largest = max(most, observed), list(map(max, largest, found))
    reached = sum(one >= most * (1.0 - settings["rounding"]) for one in largest)
    return (1 + reached) / (1 + settings["assignments"])


def outliers(pool, settings):
    """Returns the draws that, in some value, are much further from the median than every other draw."""
    found = set()
    for column in map(bounded, zip(*pool[0])):
        centre = middle(column)
        far = [abs(value - centre) for value in column]
        draw = far.index(max(far))
        others = max(far[:draw] + far[draw + 1 :])
        if far[draw] > settings["outlying"] * others and not is_rounding(column[draw], centre, settings["rounding"]):
            found.add(draw)
    return found


def is_outlier(pools, settings):
    """Whether a single judged draw is an outlier, and few of the draws with which it is compared are outliers, too."""
    found = [outliers(pool, settings) for pool in pools if pool[1] == 1]
    others = sum(len(draws - {0}) for draws in found)
    return any(0 in draws for draws in found) and others <= settings["most_outliers"]


def is_rounding(one, other, rounding):
    """Whether two numbers differ by no more than rounding can cause."""
    return abs(one - other) <= rounding * max(abs(one), abs(other))


def varies(rows, rounding):
    """Whether results of several runs differ by more than rounding can cause."""
    return any(not is_rounding(one, other, rounding) for row in rows for one, other in zip(row, rows[0]))


def seeded(runs, repeats, is_report, rounding):
    """Returns for each value whether all runs of the attempt's code agree on it because the code has a fixed seed.

    Discrete values can agree by chance. If the runs agree on all values, this matters only for a report, which would
    otherwise have to be that result: then no repeat may be equal to it. If the runs agree on some values, no repeat may
    have the same value.
    """
    is_chance = is_report and any(not varies([row, runs[0]], rounding) for row in repeats)
    if varies(repeats, rounding) and not varies(runs, rounding) and not is_chance:
        return [True] * len(runs[0])

    def is_seeded(ours, golds):
        agree = all(is_rounding(one, ours[0], rounding) for one in ours)
        is_known = any(is_rounding(one, ours[0], rounding) for one in golds)
        return agree and not is_known and not all(is_rounding(one, golds[0], rounding) for one in golds)

    return [is_seeded(ours, golds) for ours, golds in zip(zip(*runs), zip(*repeats))]


def pool(experiment, judged, runs, rounding):
    """Returns whether `judged` can be right, and pools that compare it with `runs` or, without them, gold's repeats.

    It cannot be right if there is nothing to judge, a result does not have gold's shape, or a reported value differs
    from the one that the attempt's code gives in every run because of its seed.
    """
    gold, tolerance = experiment["gold"], experiment["tolerance"]
    groups = [[numbers(gold, one) for one in group] for group in [judged, runs, tolerance["repeats"]]]
    if not groups[0] or any(None in group for group in groups):
        return False, []
    judged, runs, repeats = groups
    for column, leaf in enumerate(leaves(gold)):
        constant = repeats[0][column]
        if all(is_rounding(row[column], constant, rounding) for row in repeats):
            for row in judged + runs + repeats:
                if agrees(leaf, row[column], tolerance):
                    row[column] = constant
    fixed = seeded(runs or judged, repeats, bool(runs), rounding)
    right = True
    for column, leaf in enumerate(leaves(gold) if runs else []):
        run = runs[0][column]
        is_whole = isinstance(leaf, int) and run == int(run) and abs(run) < 2**53
        if fixed[column] and not agrees(int(run) if is_whole else run, judged[0][column], tolerance):
            right = False
    pools = []
    # Several runs of code with a seed count as one draw.
    for is_fixed in [False] if runs else [False, True]:
        chosen = [column for column, one in enumerate(fixed) if one == is_fixed]
        first = judged[:1] if is_fixed else judged
        draws = [[row[column] for column in chosen] for row in first + runs + repeats]
        if chosen:
            pools.append((draws, len(first), len(runs or repeats)))
    return right, pools


def leaves(gold):
    """Returns the numbers of a gold result, in order."""
    if isinstance(gold, dict):
        return [one for part in gold.values() for one in leaves(part)]
    if isinstance(gold, list):
        return [one for part in gold for one in leaves(part)]
    return [gold] if is_number(gold) else []


def judged_draws(judged, test, settings):
    """Returns by experiment id whether the experiment passes, given the results of `pool`.

    The test covers all pools, so they pass or fail together. Pools that compare a single draw with all others are
    tested apart from the rest, whose level is then lower, because their p is coarse and their distances are larger.
    """
    pools = [pool for _, found in judged.values() for pool in found]
    single = [pool for pool in pools if is_one_against_all(pool)]
    several = [pool for pool in pools if not is_one_against_all(pool)]
    right = not is_outlier(pools, settings)
    for part, level in [(single, test["level"]), (several, test["level_beside_single"] if single else test["level"])]:
        right = right and (not part or least_p(part, test["furthest"], settings) > level)
    return {name: is_right and (right or not found) for name, (is_right, found) in judged.items()}


def verified_draws(experiments, runs, settings):
    """Judges experiments with random results: compares runs of the attempt's code with gold's repeats."""
    pools = {one["id"]: pool(one, runs.get(one["id"], []), [], settings["rounding"]) for one in experiments}
    return judged_draws(pools, settings["verified"], settings)


def reported_draws(experiments, runs, settings, reported):
    """Judges the reported results of experiments with random results: compares them with runs of the attempt's code."""
    given = {one["id"]: [reported[one["key"]]] if one["key"] in reported else [] for one in experiments}
    rounding = settings["rounding"]
    pools = {one["id"]: pool(one, given[one["id"]], runs.get(one["id"], []), rounding) for one in experiments}
    return judged_draws(pools, settings["reported"], settings)


def number_of(key):
    """Returns the number in "Experiment 3", "experiment_3", "experiment3" or "3"; None for other keys."""
    lower = key.strip().lower()
    rest = lower.removeprefix("experiment")
    digits = lower if rest == lower else rest.lstrip(" _-#:")
    if not re.fullmatch("[0-9]{1,400}", digits):
        return None
    return int(digits) if int(digits) <= MOST_NUMBER else None


def results_in(text):
    """Returns the object in the text of an answer; an empty one if there is none."""
    try:
        return measure.read_answer(text)
    except ValueError:
        return {}


def owner(key, experiments):
    """Returns the key of the experiment that a key of an answer refers to; None if there is none.

    The answer may use the experiment's key or id, the key in another spelling, or the id in another case.
    """
    number, lower = number_of(key), key.strip().lower()
    rules = [
        lambda one: one["key"] == key,
        lambda one: one["id"] == key,
        lambda one: number is not None and number_of(one["key"]) == number,
        lambda one: one["id"].lower() == lower,
    ]
    return next((one["key"] for rule in rules for one in experiments if rule(one)), None)


def placed(answer, experiments):
    """Returns an answer's results by experiment key, without experiments for which the answer has different results."""
    found = {}
    for key, value in answer.items():
        found.setdefault(owner(key, experiments), []).append(value)
    return {one: values[0] for one, values in found.items() if all(measure.same(values[0], other) for other in values)}


def compiled(expressions):
    """Compiles the task's globs, which the export has converted to regular expressions over bytes."""
    return [re.compile(expression.encode(), re.DOTALL) for expression in expressions]


def protects(globs, path):
    return any(glob.fullmatch(os.fsencode(path)) for glob in globs)


def folders_of_python():
    """Returns the folders of Python's library and of the environment's packages."""
    paths = sysconfig.get_paths()
    return {Path(paths[kind]) for kind in ["stdlib", "platstdlib", "purelib", "platlib"]}


def library():
    """Returns names of modules in Python's library and the environment, and of modules that Python loads at start."""
    folders = folders_of_python()
    folders |= {folder / "lib-dynload" for folder in folders}
    names = {"sitecustomize", "usercustomize"}
    for folder in folders:
        for entry in folder.iterdir() if folder.is_dir() else []:
            if entry.suffix in (".py", ".so") or entry.is_dir():
                names.add(entry.name.split(".")[0])
    return names


# Words that may begin a line on which a statement follows after a colon.
BLOCKS = {"try", "except", "else", "finally", "if", "elif", "with", "for", "while"}


def imported(line):
    """Returns the top-level modules that a line imports: `["a", "b"]` for `import a.c as d; import b`."""
    return [name for statement in line.split("#")[0].split(";") for name in imported_by(statement.strip())]


def imported_by(statement):
    """Returns the top-level modules that a statement imports; the header of its block may be on the same line."""
    if ":" in statement and re.split(r"\W", statement)[0] in BLOCKS:
        statement = statement.rsplit(":", 1)[1].strip()
    if statement.startswith("import "):
        modules = [module.strip() for module in statement.removeprefix("import ").split(",")]
    elif statement.startswith("from ") and " import" in statement:
        modules = [statement.removeprefix("from ").split(" import")[0].strip()]
    else:
        return []
    # A line of prose may begin like an import, but then the rest does not consist of module names.
    if not all(re.fullmatch(r"\w+(\.\w+)*(\s+as\s+\S+)?", module) for module in modules):
        return []
    return [re.split(r"[.\s]", module)[0] for module in modules]


def imports(folder):
    """Returns top-level modules that Python files below a folder import, except modules next to the importing file."""
    names = set()
    for beside, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in ASIDE]
        for file in files:
            if not file.endswith(".py"):
                continue
            try:
                text = Path(beside, file).read_bytes().decode(errors="replace")
            except OSError:
                continue
            found = {name for line in text.split("\n") for name in imported(line)} - names
            names |= {one for one in found if not Path(beside, one + ".py").exists() and not Path(beside, one).is_dir()}
    return names


def folders_of(path):
    """Returns the folders above a path in the repo, from the innermost to the root, which is the empty path."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[:count]) for count in range(len(parts), -1, -1)]


def hidden_in(root, globs):
    """Returns the hidden files, and the folders that contain hidden files and, at any depth, no other files."""
    hidden, others = set(), set()
    for folder, folders, names in os.walk(root) if globs else []:
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in [*names, *links]:
            path = os.path.relpath(os.path.join(folder, name), root)
            (hidden if protects(globs, path) else others).add(path)
    above = [{one for path in paths for one in folders_of(path)} for paths in (hidden, others)]
    return hidden, above[0] - above[1]


class Guard:
    """Decides which of an attempt's changes are ignored."""

    def __init__(self, original, globs, left_out, hidden=()):
        self.original, self.globs = original, globs
        # The files that are hidden from agents, and the folders that contain hidden files and no other files.
        self.hidden, self.hidden_folders = hidden_in(original, hidden)
        python = [path for path in files(original, left_out) if path.endswith(".py")]
        # Protected Python files, without their `.py`.
        self.modules = {path[:-3] for path in python if protects(globs, path)}
        # Folders of top-level modules: the repo's root, and folders of protected files that are not packages.
        folders = {os.path.dirname(module) for module in self.modules}
        self.roots = {""} | {folder for folder in folders if not Path(original, folder, "__init__.py").exists()}
        self.library = library()

    @functools.cached_property
    def imported(self):
        """Modules that code of the repo, Python or the environment imports, except modules next to that code."""
        return set().union(*map(imports, {self.original, *folders_of_python()}))

    def keeps_out(self, path):
        is_new = not Path(self.original, path).exists()
        return (
            protects(self.globs, path)
            or any(f"{path}/".startswith(f"{file}/") or file.startswith(f"{path}/") for file in self.hidden)
            or (is_new and (self.shadows(path) or self.disturbs_hidden_tests(path)))
        )

    def disturbs_hidden_tests(self, path):
        """Whether a new file at this path may change how hidden tests are found and imported."""
        if not self.hidden:
            return False
        folder, name = os.path.split(path)
        is_init = name.split(".")[0] == "__init__" and name.endswith(CODE)
        return (
            name in PYTEST_FILES
            or any(part.endswith(METADATA_FOLDERS) for part in path.split("/"))
            or any(one in self.hidden_folders for one in folders_of(path))
            or (is_init and any(not folder or file.startswith(f"{folder}/") for file in self.hidden | self.modules))
        )

    def shadows(self, path):
        """Whether Python would import a new file at this path instead of another module."""
        for module in self.modules:
            rest = path.removeprefix(module)
            if rest == path:
                continue
            if rest.startswith("/") and not Path(self.original, module).exists():
                return True
            if rest.startswith(".") and rest.endswith((".so", ".pyc")):
                return True
        for root in self.roots:
            inside = path if not root else path.removeprefix(root + "/")
            if root and inside == path:
                continue
            first, _, rest = inside.partition("/")
            is_module = bool(rest) or first.endswith(CODE)
            is_known = bool(rest) and Path(self.original, root, first).exists()
            name = first.split(".")[0]
            if is_module and not is_known and (name in self.library or (path.endswith(CODE) and name in self.imported)):
                return True
        return False


def files(root, left_out):
    """Returns regular files by relative path. Skips links, large files, and what `left_out` names, such as caches."""
    endings = tuple(left_out["endings"])

    def is_kept(name):
        return name not in left_out["names"] and not name.endswith(endings)

    found = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if is_kept(name) and not os.path.islink(os.path.join(folder, name))]
        for name in filter(is_kept, names):
            path = os.path.join(folder, name)
            facts = os.lstat(path)
            if stat.S_ISREG(facts.st_mode) and facts.st_size <= measure.MOST_BYTES:
                found[os.path.relpath(path, root)] = path
    return found


def changes(guard, workspace, left_out):
    """Returns the files that the attempt removed, those that it changed, and those whose changes are ignored."""
    before, after = files(guard.original, left_out), files(workspace, left_out)
    # A file that was replaced by a link or has become too large is not gone: its change is left out.
    missing = {path for path in before.keys() - after.keys() if not os.path.lexists(os.path.join(workspace, path))}
    gone = {path for path in missing - TASK_FILES if not protects(guard.globs, path)}
    changed, ignored = {}, []
    for path, source in sorted(after.items()):
        is_same = path in before and Path(before[path]).read_bytes() == Path(source).read_bytes()
        if path in TASK_FILES or is_same:
            continue
        if guard.keeps_out(path):
            ignored.append(path)
        else:
            changed[path] = source
    return gone, changed, ignored


def rebuild(original, gone, changed, left_out, target):
    """Copies the masked repo to `target` with the attempt's changes; returns the paths that cannot be written."""
    shutil.copytree(original, target, symlinks=True)
    for path in gone:
        Path(target, path).unlink(missing_ok=True)
    ignored = []
    for path, source in changed.items():
        place = Path(target, path)
        try:
            if place.is_dir() and not files(place, left_out):
                shutil.rmtree(place)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, place)
        except OSError:
            ignored.append(path)
    return ignored


def hide(root, hidden):
    """Removes the files that only hidden experiments need and that agents never get."""
    for folder, _, names in os.walk(root) if hidden else []:
        for name in names:
            path = os.path.join(folder, name)
            if protects(hidden, os.path.relpath(path, root)):
                os.unlink(path)


def again(task, experiment, change, user):
    """Runs an experiment in a new copy of the repo, so that an experiment's code cannot change what later ones run."""
    with measure.temporary_folder() as scratch:
        root = Path(scratch, "repo")
        ignored = rebuild(*change, task["left_out"], root)
        if not experiment.get("hidden", False):
            hide(root, compiled(task.get("hidden", [])))
        if user is not None:
            os.chmod(scratch, 0o755)
            for folder, folders, names in os.walk(root):
                for name in [".", *folders, *names]:
                    os.chown(os.path.join(folder, name), user, user, follow_symlinks=False)
        outcome = measure.run(experiment, root, user)
        if user is not None:
            sweep(user)
            remove_files(user)
    return outcome, ignored


def sweep(user):
    """Kills all processes that an experiment left running, because they could still write to the logs."""
    for _ in range(100):
        left = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and entry.stat().st_uid == user:
                    os.kill(int(entry.name), signal.SIGKILL)
                    left.append(entry.name)
            except OSError:
                continue
        if not left:
            return
        time.sleep(0.05)


def remove_files(user):
    """Removes what an experiment left in folders that the next experiment can read."""
    for folder in filter(os.path.isdir, ["/tmp", "/var/tmp", "/dev/shm"]):
        for entry in os.scandir(folder):
            if entry.stat(follow_symlinks=False).st_uid != user:
                continue
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                os.unlink(entry.path)


def write(logs, verdict, reward):
    logs.mkdir(parents=True, exist_ok=True)
    (logs / "verdict.json").write_text(json.dumps(verdict, indent=2))
    (logs / "reward.json").write_text(json.dumps(reward))


def main(tests, workspace, logs):
    """Verifies the attempt and writes its reward, which is 0 if anything goes wrong.

    The reward of 0 is written first. Otherwise an attempt that expects to fail could make the verification end early,
    and would be left without a reward instead of with a reward of 0.
    """
    nothing = {"reward": 0.0, "reported": 0.0, "verified": 0.0}
    write(logs, {"error": "verification did not end"}, nothing)
    try:
        verdict, reward = verify(tests, workspace)
        write(logs, verdict, reward)
    except Exception as error:
        write(logs, {"error": f"{type(error).__name__}: {error}"[:1000]}, nothing)


def verify(tests, workspace):
    task = json.loads((tests / "task.json").read_text())
    try:
        text = measure.read_file(workspace, "answer.json", measure.MOST_ANSWER)
    except (OSError, ValueError):
        text = ""
    results = placed(results_in(text), task["experiments"])
    user = USER if os.geteuid() == 0 else None
    original = tests / "original"
    hidden = compiled(task.get("hidden", []))
    guard = Guard(original, compiled(task["protected"]), task["left_out"], hidden)
    gone, changed, ignored = changes(guard, workspace, task["left_out"])
    verdict = {"ignored": ignored, "experiments": {}}
    runs = {}
    for experiment in task["experiments"]:
        outcomes = []
        for _ in range(experiment.get("runs", 1)):
            outcome, in_the_way = again(task, experiment, (original, gone, changed), user)
            verdict["ignored"] = sorted({*verdict["ignored"], *in_the_way})
            outcomes.append(outcome)
            if "result" not in outcome:
                break
        outcome = outcomes[-1]
        gold, tolerance = experiment["gold"], experiment["tolerance"]
        if experiment.get("runs", 1) > 1:
            runs[experiment["id"]] = [one["result"] for one in outcomes] if "result" in outcome else []
        verdict["experiments"][experiment["id"]] = {
            # Agents neither see nor report a hidden experiment.
            "reported": experiment.get("hidden", False) or agrees(gold, results.get(experiment["key"]), tolerance),
            "verified": "result" in outcome and agrees(gold, outcome["result"], tolerance),
            **outcome,
        }
    varying = [one for one in task["experiments"] if one["id"] in runs]
    verified = verified_draws(varying, runs, task.get("redraw"))
    shown = [one for one in varying if not one.get("hidden", False)]
    told = reported_draws(shown, runs, task.get("redraw"), results)
    for name in verified:
        verdict["experiments"][name].update(reported=told.get(name, True), verified=verified[name], runs=runs[name])
    scores = list(verdict["experiments"].values())
    both = [all(score[source] for score in scores) and bool(scores) for source in ["reported", "verified"]]
    reward = {"reward": float(all(both)), "reported": float(both[0]), "verified": float(both[1])}
    return verdict, reward


if __name__ == "__main__":
    folders = sys.argv[1:] or ["/tests", "/workspace", "/logs/verifier"]
    main(*[Path(folder) for folder in folders])
