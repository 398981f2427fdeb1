# shared by all scripts of the study
SEED = 2019
TREES = 120
DEPTH = 5
ROUNDS = 100
FOLDS = 5
