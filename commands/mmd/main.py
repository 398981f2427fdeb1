"""``python main.py NAME OPTIONS``: the experiments of :mod:`twosample`."""

from twosample.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
