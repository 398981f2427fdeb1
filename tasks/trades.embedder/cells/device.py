!sed -i 's/"device": .*/"device": "cpu",/' settings.json
