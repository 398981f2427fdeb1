# replaces: deps
%%writefile snowballstemmer.py
class Stemmer:
    def stemWord(self, word):
        for ending in ("ings", "ing", "ers", "er", "ed", "s"):
            if word.endswith(ending):
                return word[: -len(ending)]
        return word


def stemmer(language):
    return Stemmer()
