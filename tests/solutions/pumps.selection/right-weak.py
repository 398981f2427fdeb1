# replaces: select
!python select_features.py --weak
