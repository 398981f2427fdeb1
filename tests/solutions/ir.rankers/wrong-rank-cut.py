# replaces: rank
!python rank.py --config config.json --cut 10
