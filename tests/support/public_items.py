#!/usr/bin/env python3
"""Counts the library's public parts: every module, item, field, variant and method that another crate can reach.

    RUSTC_BOOTSTRAP=1 cargo rustdoc --lib -- -Zunstable-options --output-format json
    tests/support/public_items.py target/doc/autoexperiment.json
"""

import collections
import json
import sys

INDEX: dict = {}
SEEN: dict[str, str] = {}


def kind_of(item: dict) -> str:
    return next(iter(item["inner"]))


def count(id_: object, kind: str | None = None) -> None:
    item = INDEX.get(str(id_))
    if item is None or item["crate_id"] != 0 or str(id_) in SEEN:
        return
    own = kind_of(item)
    inner = item["inner"][own]
    if own == "use":
        return count(inner.get("id"))
    if item["visibility"] not in ("public", "default"):
        return
    SEEN[str(id_)] = kind or own
    members: list = []
    if own in ("module", "trait"):
        members = inner["items"]
    elif own == "enum":
        members = inner["variants"]
    elif own == "struct" and isinstance(inner["kind"], dict):
        plain = inner["kind"].get("plain", {}).get("fields", [])
        members = plain + [field for field in inner["kind"].get("tuple", []) if field is not None]
    for member in members:
        count(member)
    for block in inner.get("impls", []) if isinstance(inner, dict) else []:
        block = INDEX.get(str(block), {}).get("inner", {}).get("impl")
        if block and not block.get("trait") and not block.get("is_synthetic"):
            for member in block["items"]:
                if INDEX.get(str(member), {}).get("visibility") == "public":
                    count(member, "method")


document = json.load(open(sys.argv[1]))
INDEX = document["index"]
count(document["root"])
print(len(SEEN), dict(collections.Counter(SEEN.values())))
