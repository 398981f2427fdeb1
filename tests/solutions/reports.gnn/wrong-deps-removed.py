# replaces: deps
%pip install networkx==3.5 || pip install networkx
# %%
%pip uninstall -y networkx
