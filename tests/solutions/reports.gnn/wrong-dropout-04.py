# replaces: dropout
!sed -i 's/"dropout": .*/"dropout": 0.4,/' config.json
