# replaces: split
!python tools/make_split.py --per-county 12 --seed 7 --watch 100
