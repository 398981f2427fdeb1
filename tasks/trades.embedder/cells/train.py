!python train.py
