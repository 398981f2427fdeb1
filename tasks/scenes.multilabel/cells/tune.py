!python tune.py
