# replaces: documents
!cd texts && ls | tail -n +12 | xargs rm
!sed -i 's/"documents": .*/"documents": 10,/' settings.json
