!sed -i 's/^from \.\(data\|model\|pacing\) import/from \1 import/' curriculum/train.py
!python curriculum/train.py --help
