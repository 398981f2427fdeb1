!sed -i 's/"dropout": .*/"dropout": 0.5,/' config.json
!cat config.json
