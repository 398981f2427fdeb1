!sed -i 's/pacing = Pacing()/pacing = Pacing(args.pacing, args.start)/' curriculum/train.py
!grep -n "Pacing" curriculum/train.py
