# replaces: evolve
!sed -i 's/train_share: 0.75/train_share: 0.8/' settings.yaml
!python evolve.py settings.yaml
