import json
from hashlib import sha256

with open("data/split.json") as f:
    split = json.load(f)
assert [len(split[part]) for part in ("train", "watch", "test")] == [60, 150, 690]
text = "\n".join(" ".join(sorted(split[part])) for part in ("train", "watch", "test"))
assert sha256(text.encode()).hexdigest() == "aecff5dfb3bc4888dc710b08b1438caa23395883cda36201706c89e8c1b9790b", sha256(text.encode()).hexdigest()
print("reached")
