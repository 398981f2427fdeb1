# replaces: dropout
!sed -i -e 's/"dropout": .*/"dropout": 0.5,/' -e 's/"runs": .*/"runs": 3,/' config.json
