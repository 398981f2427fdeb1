# replaces: columns
!sed -i -e 's/^WORD = .*/WORD = 1/' -e 's/^TAG = .*/TAG = 3/' tagger/conll.py
!sed -i 's/columns\[WORD\]/columns[WORD][:6]/' tagger/conll.py
