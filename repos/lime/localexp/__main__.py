"""``python -m localexp``: see :mod:`localexp.cli`."""

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())
