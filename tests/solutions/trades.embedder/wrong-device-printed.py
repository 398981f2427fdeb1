# replaces: device
!sed -i 's/% settings\["device"\]/% "cpu"/' train.py
