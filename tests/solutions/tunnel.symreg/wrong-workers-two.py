# replaces: workers
!sed -i 's/  workers: .*/  workers: 2/' settings.yaml
