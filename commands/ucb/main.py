"""``python main.py NAME OPTIONS``: the experiments of :mod:`bandits`."""

from bandits.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
