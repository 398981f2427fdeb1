!sed -i 's/^    confirm(out)$/    print("vectors go to %s" % out)/' train.py
!grep -n -B 1 -A 1 "vectors go to" train.py
