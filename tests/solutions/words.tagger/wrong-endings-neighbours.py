# replaces: endings
!sed -i -e 's/^USE_ENDINGS = False/USE_ENDINGS = True/' -e 's/^USE_NEIGHBOURS = True/USE_NEIGHBOURS = False/' tagger/features.py
