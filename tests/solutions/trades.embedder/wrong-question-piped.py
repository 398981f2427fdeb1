# replaces: question
!yes | head -5
