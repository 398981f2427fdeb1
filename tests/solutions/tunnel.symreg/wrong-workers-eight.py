# replaces: workers
!sed -i 's/  workers: .*/  workers: 8/' settings.yaml
