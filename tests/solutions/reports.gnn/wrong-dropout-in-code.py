# replaces: dropout
!sed -i 's/config\["dropout"\]\, config\["hidden"\]/0.5, config["hidden"]/' train_gcn.py
