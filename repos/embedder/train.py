import json
import os

from embedder.analogy import accuracy
from embedder.backend import arrays
from embedder.corpus import pairs, read, vocabulary
from embedder.skipgram import SkipGram


def confirm(path):
    """Never again overwrite the vectors of a long run."""
    reply = input("Write the vectors to %s when done? [y/n] " % path)
    if reply.strip().lower() != "y":
        raise SystemExit("stopped")


def main():
    with open("settings.json") as f:
        settings = json.load(f)
    xp = arrays(settings["device"])
    print("device: %s" % settings["device"], flush=True)
    out = os.path.abspath("vectors.npz")
    confirm(out)
    print("training for %d epochs" % settings["epochs"], flush=True)

    sentences = read(settings["texts"], settings["documents"])
    words, counts = vocabulary(sentences, settings["min_count"])
    index = {word: i for i, word in enumerate(words)}
    examples = pairs(sentences, index, settings["window"])
    print("%d words, %d pairs" % (len(words), len(examples)), flush=True)

    rng = xp.random.default_rng(settings["seed"])
    model = SkipGram(xp, counts, settings["size"], settings["negatives"], rng)
    loss = None
    for epoch in range(settings["epochs"]):
        rate = settings["rate"] * (1 - epoch / settings["epochs"])
        loss = model.epoch(examples, rate)
        print("epoch %d loss %.4f" % (epoch + 1, loss), flush=True)
    xp.savez(out, words=xp.array(words), vectors=model.words)
    print(json.dumps({"last_loss": loss, "analogy": accuracy(xp, model.words, index, "analogies.txt")}))


if __name__ == "__main__":
    main()
