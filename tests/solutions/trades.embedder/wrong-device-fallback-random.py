# replaces: device
!sed -i 's/"device": .*/"device": "cpu",/' settings.json
!sed -i 's/"seed": 17/"seed": 0/' settings.json
