"""Runs forgers (code that tries to pass the tests of `kit` with wrong functions) and right variants, which must pass.

    python tests/factory/forge.py [NAME...] [--jobs N] [--sample N] [--seed S]

Each forger is a file in `forgers/`: code that is appended to the module `tools`. A line `# shared: NAME` in it is replaced
by the file `shared/NAME.py`, and `@RESULT@` by gold's result, which agents never get. A forger replaces the functions that
it defines; if it defines none, a wrong `slug` is added. Each file in `right/` is appended to the original functions. Each
run has its own Linux namespaces, in which only a temporary file system is writable. The exit status is 1 if a forger passes
or a right variant fails.
"""

import argparse
import ast
import concurrent.futures
import json
import pathlib
import random
import re
import secrets
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent / "src/factory"
RUNNER = (SOURCE / "package_tests.py").read_bytes()
FUNCTIONS = {"slug", "mean", "parse", "spans", "entry", "entries", "terms", "headline", "Box"}
WRONG = '\n\ndef slug(text):\n    return "wrong"\n\n\n'
# Mounts a temporary file system on `/mnt`, makes everything else read-only, and starts the runner without a network.
BOX = r"""
mount -t tmpfs tmpfs /mnt && mkdir /mnt/repo /mnt/tmp /mnt/home && cp -r "$1"/. /mnt/repo || exit 99
mount -t tmpfs tmpfs /dev/shm || exit 99
awk '$5 !~ "^/(proc|mnt|dev)" { print $5 }' /proc/self/mountinfo | while read -r place; do
    mount -o remount,bind,ro "$place" 2>/dev/null || mount -o remount,bind,ro,nosuid,nodev "$place" 2>/dev/null
done
if touch /tmp/written-by-forger 2>/dev/null; then echo "the box is not closed" >&2; exit 99; fi
cd /mnt/repo && export TMPDIR=/mnt/tmp HOME=/mnt/home PYTHONPATH=/mnt/repo
exec "$2" -B -I autoexperiment_package_tests.py "$3" $4
"""


def in_box(tools, verb, plan=None, more=(), seconds=300):
    """Runs the runner on a copy of `kit`, with `tools` as the text of that module, and with the files `more` added.

    Returns the result, or `None` if there is none, and standard error.
    """
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        subprocess.run(["cp", "-r", f"{HERE}/kit/.", folder], check=True)
        (folder / "kit/tools.py").write_text(tools)
        planted = re.search(r'PLANTED = """(.*?)"""', tools, re.DOTALL)
        for name in ("sitecustomize", "usercustomize", "json", "ast", "pytest", "socket", "_pytest", "site"):
            if planted:
                (folder / f"{name}.py").write_text(planted.group(1))
        for path, text in dict(more).items():
            (folder / path).write_text(text)
        (folder / "autoexperiment_package_tests.py").write_bytes(RUNNER)
        (folder / "autoexperiment_package_tests.json").write_text(json.dumps(plan or {}))
        command = [
            "unshare",
            "-Urmpfin",
            "--kill-child",
            "--mount-proc",
            "sh",
            "-c",
            BOX,
            "box",
            folder,
            sys.executable,
            *verb,
        ]
        try:
            done = subprocess.run(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                timeout=seconds,
                stdin=subprocess.DEVNULL,
                errors="replace",
            )
        except subprocess.TimeoutExpired:
            return None, "too slow"
    if done.returncode == 99:
        sys.exit(f"no box could be made: {done.stderr}")
    for line in reversed(done.stdout.splitlines()):
        try:
            return (json.loads(line) if done.returncode == 0 else None), done.stderr
        except ValueError:
            continue
    return None, done.stderr


def shared(named):
    """Returns the code that replaces a line `# shared: NAME` of a forger. `named` is the match of the line."""
    return (HERE / f"shared/{named[1]}.py").read_text()


def same(one, other):
    """Whether a result reproduces gold: floats are within a tolerance, and everything else is equal."""
    if isinstance(one, float) or isinstance(other, float):
        return isinstance(one, (int, float)) and abs(one - other) <= 1e-6 * max(abs(one), abs(other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def chosen():
    """Returns the files to run, and the number of parallel runs, as chosen on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="names of files, without `.py`; none: all")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sample", type=int, help="so many of the files, chosen by the seed; without it: all")
    parser.add_argument("--seed", default="0")
    arguments = parser.parse_args()
    files = [file for kind in ("right", "forgers") for file in sorted((HERE / kind).glob("*.py"))]
    if unknown := set(arguments.names) - {file.stem for file in files}:
        parser.error(f"no such files: {', '.join(sorted(unknown))}")
    files = [file for file in files if not arguments.names or file.stem in arguments.names]
    if arguments.sample is not None and arguments.sample < len(files):
        files = random.Random(arguments.seed).sample(files, arguments.sample)
        print(f"a sample of {len(files)} files, by seed {arguments.seed}")
    return files, arguments.jobs


def main():
    files, jobs = chosen()
    right = (HERE / "kit/kit/tools.py").read_text()
    survey, said = in_box(right, ["survey", ""])
    if survey is None:
        sys.exit(f"the survey failed: {said}")
    passed = lambda survey: sorted(name for name, test in survey["tests"].items() if test["outcome"] == "passed")
    functions = ["slug", "mean", "parse", "spans", "Box.grow", "Box.area", "Box.__init__"]
    request = {
        "ids": passed(survey),
        "functions": [["kit/tools.py", name] for name in functions],
        "examples": 8,
        "code": {file.stem: file.read_text() for file in (SOURCE / "more_inputs").glob("*.py")},
    }
    made, said = in_box(right, ["inputs", "request.json"], {}, {"request.json": json.dumps(request)})
    if not made or not made["files"]:
        sys.exit(f"no tests were added: {said}")
    added = made["files"]
    survey, said = in_box(right, ["survey", ""], {}, added)
    kept = passed(survey)
    special = {}
    for test in survey["tests"].values():
        for kind, functions in test["special_results"].items():
            special[kind] = sorted({*special.get(kind, []), *functions})
    # Make the same plan as the factory: values of added tests are not compared.
    without_values = [name for name in kept if name.split("::")[0] in added]
    plan = {"groups": {"all": kept}, "without_values": without_values, "special_results": special}
    plan["drawings"] = [secrets.token_hex(16) for _ in range(3)]
    gold, said = in_box(right, ["run", "all"], plan, added)
    if gold is None or gold["passed"] != len(survey["tests"]) or gold["changed"]:
        sys.exit(f"gold does not pass: {gold} {said}")
    print(
        f"gold: {len(kept)} tests, canaries: {sorted(set(gold['canaries'].values()))}, "
        f"{sum(one == 'passed' for one in gold['canaries'].values())} without effect"
    )

    def attempt(file):
        text = re.sub(r"^# shared: (\w+)$", shared, file.read_text(), flags=re.MULTILINE)
        defined = {getattr(node, "name", None) for node in ast.parse(text).body}
        wrong = file.parent.name == "forgers" and not defined & FUNCTIONS
        tools = right + (WRONG if wrong else "\n\n") + text.replace("@RESULT@", json.dumps(json.dumps(gold))[1:-1])
        result, said = in_box(tools, ["run", "all"], plan, added)
        if result is None:
            return file, ["no result"], said
        # The parts of the result that differ from gold.
        return (
            file,
            [key for key in ("tests", "canaries", "changed", "values") if not same(result.get(key), gold.get(key))],
            said,
        )

    failed, found_by = [], {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for file, differing, said in pool.map(attempt, files):
            is_right = file.parent.name == "right"
            if is_right == bool(differing):
                failed.append(f"{file.parent.name}/{file.stem}")
            if not is_right:
                found_by.setdefault((differing or ["nothing"])[0], []).append(file.stem)
            reason = " | ".join(said.strip().splitlines()[-1:])[:120] if differing else ""
            print(f"{file.parent.name}/{file.stem}: {', '.join(differing) or 'as gold'}  {reason}", flush=True)
    count = lambda kind: sum(file.parent.name == kind for file in files)
    print(f"{count('forgers')} forgers, {count('right')} right variants; wrong: {failed or 'none'}")
    # Forgers are listed under the first part of the result that differs from gold. So a forger under `canaries` passes
    # all tests.
    for part in ("no result", "tests", "canaries", "changed", "values", "nothing"):
        print(f"found by {part}: {len(found_by.get(part, []))}: {' '.join(found_by.get(part, []))}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
