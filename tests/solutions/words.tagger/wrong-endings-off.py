# replaces: endings
!grep USE_ tagger/features.py
