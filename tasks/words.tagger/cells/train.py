!python train_tagger.py --train data/train.conll --test data/test.conll
