# replaces: settings
!sed -i -e 's/^SEED = .*/SEED = 7/' -e 's/^TREES = .*/TREES = 200/' -e 's/^ROUNDS = .*/ROUNDS = 50/' settings.py
