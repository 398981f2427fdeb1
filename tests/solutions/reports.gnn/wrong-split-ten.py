# replaces: split
!python tools/make_split.py --seed 7
