!sed -i 's/^USE_ENDINGS = False/USE_ENDINGS = True/' tagger/features.py
