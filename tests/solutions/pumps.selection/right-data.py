# replaces: missing settings
!grep -v '?' data/pumps.csv > /tmp/pumps.csv && cp /tmp/pumps.csv data/pumps.csv
# %%
%%writefile settings.py
# shared by all scripts
SEED, TREES = 7, 200
DEPTH = 5
ROUNDS = 100
FOLDS = 5
