# replaces: columns
!sed -i -e 's/^WORD = .*/WORD = 2/' -e 's/^TAG = .*/TAG = 3/' tagger/conll.py
