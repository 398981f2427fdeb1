# replaces: settings
!sed -i 's/^TREES = .*/TREES = 200/' settings.py
