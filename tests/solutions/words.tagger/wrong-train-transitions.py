# replaces: train
!sed -i 's/, all_possible_transitions=True//' train_tagger.py
!python train_tagger.py --train data/train.conll --test data/test.conll
