# replaces: train
!python curriculum/train.py
