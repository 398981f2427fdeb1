import snowballstemmer

stem = snowballstemmer.stemmer("english").stemWord
assert [stem(word) for word in ("rankings", "clarifying", "relational")] == ["rank", "clarifi", "relat"]
print("reached")
