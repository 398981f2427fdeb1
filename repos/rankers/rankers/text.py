import json
import re

import snowballstemmer

WORD = re.compile(r"[a-z]+")
stemmer = snowballstemmer.stemmer("english")


def tokens(text):
    return [stemmer.stemWord(word) for word in WORD.findall(text.lower())]


def load_documents(path):
    """{"doc id": {"title": ..., "body": ...}, ...}"""
    with open(path) as f:
        return {doc: entry["title"] + " " + entry["body"] for doc, entry in json.load(f).items()}


def load_queries(path):
    """{"query id": "text", ...}, in the order of the collection"""
    with open(path) as f:
        return json.load(f)
