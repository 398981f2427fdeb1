!python tools/make_split.py --per-county 12 --seed 7
