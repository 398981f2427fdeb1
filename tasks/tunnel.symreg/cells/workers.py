!sed -i 's/  workers: .*/  workers: 1/' settings.yaml
!tail -2 settings.yaml
