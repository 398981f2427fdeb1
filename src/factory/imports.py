"""Imports modules, and writes which of them cannot be imported, with the reason.

Arguments: a JSON file with the names of the modules, and the file to write."""

import importlib
import json
import os
import sys


def failures(names):
    """Why modules cannot be imported, by their names."""
    found = {}
    for name in names:
        try:
            importlib.import_module(name)
        except BaseException as error:
            try:
                text = " ".join(str(error).split())
            except Exception:
                text = ""
            found[name] = f"{type(error).__name__}: {text}"[:300]
    return found


def main():
    request, output = map(os.path.abspath, sys.argv[1:])
    with open(request, encoding="utf-8") as file:
        names = json.load(file)
    sys.argv = [""]
    found = failures(names)
    with open(output, "w", encoding="utf-8") as file:
        json.dump(found, file)
    # Do not wait for threads that the modules have started.
    os._exit(0)


if __name__ == "__main__":
    main()
