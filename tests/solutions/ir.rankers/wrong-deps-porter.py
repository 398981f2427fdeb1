# replaces: deps
%pip install snowballstemmer
# %%
!sed -i 's/stemmer("english")/stemmer("porter")/' rankers/text.py
