!python rank.py --config config.json
