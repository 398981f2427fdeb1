!python select_features.py
