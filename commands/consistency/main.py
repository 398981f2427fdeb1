"""``python main.py NAME OPTIONS``: the experiments of :mod:`consistency`."""

from consistency.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
