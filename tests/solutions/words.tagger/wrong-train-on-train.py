# replaces: train
!python train_tagger.py --train data/train.conll --test data/train.conll
