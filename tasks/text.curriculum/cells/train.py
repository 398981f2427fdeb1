!python curriculum/train.py --pacing root --start 0.1
