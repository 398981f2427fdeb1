# what a token tells the model
USE_NEIGHBOURS = True
USE_ENDINGS = False


def shape(word):
    return "".join("v" if letter in "aeiouy" else "c" for letter in word)[-6:]


def token(sentence, position):
    word = sentence[position][0]
    found = {"bias": 1.0, "word": word, "length": str(min(len(word), 8)), "shape": shape(word)}
    if USE_ENDINGS:
        for size in (2, 3, 4):
            found["ending%d" % size] = word[-size:]
    if USE_NEIGHBOURS:
        for step in (-1, 1):
            place = position + step
            inside = 0 <= place < len(sentence)
            found["word%+d" % step] = sentence[place][0] if inside else "<edge>"
            if inside and USE_ENDINGS:
                found["ending%+d" % step] = sentence[place][0][-2:]
    return found


def featurise(sentences):
    return [[token(sentence, i) for i in range(len(sentence))] for sentence in sentences]
