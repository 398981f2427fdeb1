"""The command line: one experiment a function."""
import asyncio
import cProfile
import json
import multiprocessing
import subprocess
import sys
import threading

from . import pieces


def caught():
    result = {"plain": pieces.plain(4), "swallowed": 0}
    try:
        result["swallowed"] = pieces.swallowed(4)
    except Exception:
        pass
    try:
        pieces.harmless()
    except NotImplementedError:
        pass
    return result


def generators():
    pieces.unstarted()
    return {"steps": sum(pieces.steps(5))}


def coroutine():
    return {"answer": asyncio.run(pieces.answer(3))}


def imported():
    from .table import TABLE

    return {"entry": TABLE["entry"](9)}


def methods():
    return {"volume": pieces.Box(3).volume, "outer": pieces.outer(1)}


def workers():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return {"squares": sum(pool.map(pieces.in_worker, range(4)))}


def spawned():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return {"doubles": sum(pool.map(pieces.in_spawned, range(4)))}


def child(*options, function="in_child"):
    line = [sys.executable, *options, "child.py", function]
    return {"child": int(subprocess.run(line, capture_output=True, check=True).stdout)}


def hidden():
    return child("-I", function="in_hidden")


def thread():
    found = []
    worker = threading.Thread(target=lambda: found.append(pieces.in_thread(2)))
    worker.start()
    worker.join()
    return {"found": found[0] if found else -1}


def file():
    with open("part.json", "w") as out:
        out.write('{"part": ')
        out.write("%f}" % pieces.part(1))
    return None


def tolerant():
    print(json.dumps({"printed": pieces.plain(1)}))
    sys.stdout.flush()
    pieces.late()
    return None


def profiled():
    profile = cProfile.Profile()
    value = profile.runcall(pieces.watched, 1)
    return {"watched": value}


if __name__ == "__main__":
    result = globals()[sys.argv[1]]()
    if result is not None:
        print(json.dumps(result))
