# replaces: epochs
!cat settings.json
