# replaces: train
!python curriculum/train.py --pacing root --start 0.1 --seed 1
