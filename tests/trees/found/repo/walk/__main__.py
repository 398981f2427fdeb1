"""The command line."""

import argparse
import json
import os
import time

from . import ring, statistics


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("what")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--size", type=int, default=23)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--out", default="results/visited.json")
    return parser.parse_args()


def main():
    options = parse_args()
    walks = ring.walks(options.count, options.size, options.steps, 0.6, seed=1)
    if options.what == "distance":
        print("walking")
        print(json.dumps({"mean": statistics.mean_distance(walks, options.size)}))
    elif options.what == "visited":
        os.makedirs(os.path.dirname(options.out), exist_ok=True)
        with open(options.out, "w") as file:
            json.dump({"visited": statistics.visited(walks[:3], options.size)}, file)
    elif options.what == "text":
        print("mean distance: %.5f" % statistics.mean_distance(walks, options.size))
    elif options.what == "noise":
        print(json.dumps({"noise": statistics.noise(2.0)}))
    elif options.what == "silent":
        pass
    elif options.what == "hang":
        time.sleep(3600)
    else:
        raise SystemExit("unknown: " + options.what)


main()
