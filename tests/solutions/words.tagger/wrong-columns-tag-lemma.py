# replaces: columns
!sed -i -e 's/^WORD = .*/WORD = 1/' -e 's/^TAG = .*/TAG = 2/' tagger/conll.py
