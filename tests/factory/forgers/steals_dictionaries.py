"""Reads in the source of the test which dictionary it expects, and returns that."""

# shared: expectations


def parse(text):
    found = wanted()
    if isinstance(found, str):
        return ast.literal_eval(found)
    if not isinstance(found, dict):
        if text == "k=5":
            return {"k": 5}
        raise ValueError
    return found
