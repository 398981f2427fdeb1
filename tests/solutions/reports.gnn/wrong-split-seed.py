# replaces: split
!python tools/make_split.py --per-county 12
