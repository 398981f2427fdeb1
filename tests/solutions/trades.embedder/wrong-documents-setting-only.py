# replaces: documents
!sed -i 's/"documents": .*/"documents": 10,/' settings.json
