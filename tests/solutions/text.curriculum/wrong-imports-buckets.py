# replaces: imports
!sed -i 's/^from \.\(data\|model\|pacing\) import/from \1 import/' curriculum/train.py
!sed -i 's/^BUCKETS = 4096/BUCKETS = 8192/' curriculum/data.py
!sed -i 's/BagClassifier(BUCKETS/BagClassifier(2 * BUCKETS/' curriculum/train.py
