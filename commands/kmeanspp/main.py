"""``python main.py NAME OPTIONS``: the experiments of :mod:`kmeanspp`."""

from kmeanspp.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
