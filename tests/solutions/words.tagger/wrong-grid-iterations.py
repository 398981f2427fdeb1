# replaces: grid
%%bash
sed -i 's/^GRID = .*/GRID = {"c1": [0.05, 0.1, 0.2, 0.5], "c2": [0.01, 0.02, 0.05, 0.1]}/' train_tagger.py
sed -i 's/^ITERATIONS = .*/ITERATIONS = 30/' train_tagger.py
