"""Writes texts/doc00.txt to doc23.txt and analogies.txt: trades, their tools and places, in short sentences."""
import random

TRADES = ["baker", "smith", "miller", "sailor", "weaver", "potter", "mason", "tanner", "farmer", "glazier", "cooper", "scribe"]
TOOLS = ["oven", "anvil", "stone", "rope", "loom", "wheel", "chisel", "vat", "plough", "pipe", "hoop", "quill"]
PLACES = ["bakery", "forge", "mill", "harbour", "hall", "kiln", "quarry", "yard", "field", "furnace", "cellar", "abbey"]
GOODS = ["bread", "nails", "flour", "fish", "cloth", "jars", "blocks", "hides", "oats", "panes", "barrels", "letters"]
TIMES = ["dawn", "noon", "dusk", "night", "winter", "summer", "spring", "autumn"]
FORMS = [
    "the {trade} takes the {tool} to the {place} at {time}",
    "at {time} the {trade} works with the {tool}",
    "in the {place} the {trade} makes {good}",
    "the {tool} in the {place} belongs to the {trade}",
    "buyers of {good} wait for the {trade} until {time}",
    "no {good} without a {tool} says the {trade}",
]


def main():
    rng = random.Random(99)
    for number in range(24):
        own = rng.sample(range(len(TRADES)), 9)
        with open("texts/doc%02d.txt" % number, "w") as f:
            for _ in range(75):
                i = rng.choice(own)
                stray = rng.randrange(len(TRADES)) if rng.random() < 0.08 else i
                f.write(
                    rng.choice(FORMS).format(
                        trade=TRADES[i], tool=TOOLS[stray], place=PLACES[i], good=GOODS[i], time=rng.choice(TIMES)
                    )
                    + "\n"
                )
    with open("analogies.txt", "w") as f:
        for _ in range(60):
            i, j = rng.sample(range(len(TRADES)), 2)
            kind = rng.choice([TOOLS, PLACES, GOODS])
            f.write("%s %s %s %s\n" % (TRADES[i], kind[i], TRADES[j], kind[j]))


if __name__ == "__main__":
    main()
