# replaces: columns
!sed -i -e 's/^TAG = .*/TAG = 3/' tagger/conll.py
