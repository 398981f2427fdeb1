# replaces: settings select
!python select_features.py
# %%
!sed -i -e 's/^SEED = .*/SEED = 7/' -e 's/^TREES = .*/TREES = 200/' settings.py
