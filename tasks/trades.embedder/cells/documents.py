!sed -i 's/"documents": .*/"documents": 10,/' settings.json
# %% the reader gets the number, but doesn't use it
%%bash
sed -i 's/^    sentences = \[\]$/    names = names[:documents] if documents else names\n&/' embedder/corpus.py
sed -n '/^def read/,/return/p' embedder/corpus.py
