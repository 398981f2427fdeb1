!head -3 data/train.conll
!sed -i -e 's/^WORD = .*/WORD = 1/' -e 's/^TAG = .*/TAG = 3/' tagger/conll.py
