!python train_gcn.py --config config.json
