"""``python -m bandits``: see :mod:`bandits.cli`."""

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())
