# replaces: train
%%writefile train_gcn.py
print('{"acc": 0.75}')
# %%
!python train_gcn.py --config config.json
