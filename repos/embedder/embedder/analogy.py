def accuracy(xp, vectors, index, path, neighbours=3):
    """Share of the lines `a b c d` whose d is among the nearest words to b - a + c; lines with unknown words are left out."""
    unit = vectors / (xp.linalg.norm(vectors, axis=1, keepdims=True) + 1e-12)
    right = known = 0
    with open(path) as f:
        for line in f:
            words = line.split()
            if any(word not in index for word in words):
                continue
            a, b, c, d = (index[word] for word in words)
            likeness = unit @ (unit[b] - unit[a] + unit[c])
            likeness[xp.array([a, b, c])] = -xp.inf
            known += 1
            right += int(d in xp.argsort(-likeness)[:neighbours].tolist())
    print("analogies: %d of %d" % (right, known), flush=True)
    return right / max(known, 1)
