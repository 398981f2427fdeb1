%pip install snowballstemmer
