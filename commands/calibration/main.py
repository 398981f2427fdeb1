"""``python main.py NAME OPTIONS``: the experiments of :mod:`calibration`."""

from calibration.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
