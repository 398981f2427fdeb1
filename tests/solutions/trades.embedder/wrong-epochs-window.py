# replaces: epochs
!sed -i -e 's/"epochs": .*/"epochs": 24,/' -e 's/"window": .*/"window": 2,/' settings.json
