# replaces: dropout
!sed -i -e 's/"dropout": .*/"dropout": 0.5,/' -e 's/"epochs": .*/"epochs": 200,/' config.json
