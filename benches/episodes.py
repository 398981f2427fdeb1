#!/usr/bin/env python3
"""How many episodes a server hands out: sessions that play at once, each with a scripted policy of five steps.

    benches/episodes.py [--sessions 64] [--seconds 600] [-- OPTION...]

Starts `autoexperiment serve` on the primer (the program is that of AUTOEXPERIMENT_PROGRAM, or in PATH) with as many jobs as
sessions and the given OPTIONs, and prints episodes per second, the largest memory of the server, refused episodes, and
what is left after it was stopped: processes, folders in scratch, and episodes without a record.
"""

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

COUNTING = threading.Lock()
PROJECT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PROJECT / "python"), str(PROJECT / "benches/support")]
import autoexperiment as ae  # noqa: E402
from processes import below, memory  # noqa: E402


def play(server, number, end, counts):
    """Plays episodes until `end`. Those that are refused because the server is full are asked for again."""
    with server.connect(f"session-{number % 8}") as episodes:
        while time.monotonic() < end:
            try:
                episodes.reset()
            except ae.EpisodeError as error:
                if error.kind != "CAPACITY_REACHED":
                    raise
                add(counts, "refused")
                time.sleep(0.2)
                continue
            for step in range(5):
                episodes.step("command_line", {"command": f"echo {step}"})
            last = episodes.submit({})
            add(counts, "lost" if last.reward is None else "episodes")


def add(counts, name):
    with COUNTING:
        counts[name] += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("options", nargs="*")
    given = parser.parse_args()
    counts = {"episodes": 0, "lost": 0, "refused": 0}
    largest = 0.0
    with tempfile.TemporaryDirectory() as folder:
        scratch = os.path.join(folder, "scratch")
        os.environ["AUTOEXPERIMENT_SCRATCH"] = scratch
        server = ae.serve(suite=PROJECT / "docs/results/primer", runs=Path(folder) / "runs", name="r", n=range(1, 4),
                          jobs=given.sessions, options=given.options)
        process = server._process.pid
        begun = time.monotonic()
        threads = [threading.Thread(target=play, args=(server, number, begun + given.seconds, counts)) for number in range(given.sessions)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            largest = max(largest, memory(process))
            time.sleep(0.5)
        took = time.monotonic() - begun
        sandboxes = below(process)
        server.close()
        left = [one for one in sandboxes if Path(f"/proc/{one}").exists()]
        records = len((Path(folder) / "runs/r/attempts.jsonl").read_text().splitlines())
        print(json.dumps({
            "sessions": given.sessions, "seconds": round(took, 1), **counts, "records": records,
            "per_second": round(counts["episodes"] / took, 1), "largest_memory_mb": round(largest, 1),
            "processes_left": len(left), "scratch_left": len(os.listdir(scratch)) if os.path.isdir(scratch) else 0,
        }))


main()
