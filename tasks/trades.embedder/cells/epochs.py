!sed -i 's/"epochs": .*/"epochs": 24,/' settings.json
