"""``python main.py NAME OPTIONS``: the experiments of :mod:`localexp`."""

from localexp.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
