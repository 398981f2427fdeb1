#!/usr/bin/env python3
"""Finds comment lines of Rust sources that read as if translated, by phrases that idiomatic Rust code hardly ever uses.

usage: .ci/prose.py [--list] [--at-most PERCENT] PATH...

Prints comment lines, hits and percent for each path, and the hits themselves with --list. Exits with 1 if any path is above --at-most.

A hit is a hint: reword the sentence so that a reader who has never seen the file understands it at once. Begin a doc comment with a noun
phrase (types, fields) or a verb in the third person (functions), name things instead of pointing at them with pronouns, and write
"is not a number" rather than "is no number".
"""
import argparse
import pathlib
import re
import sys

PHRASES = [
    # A summary that begins with a relative clause instead of a noun phrase or a verb.
    r"^(What|That of|Those of|Of what|So many|As many|By which|How many|Of a|Of the|Of an)\b",
    r"\b(?<!there )(?<!There )(is|are|was|were) no (?!longer\b|more\b|less\b|such\b|one\b|doubt\b|need\b|way\b)[a-z]+",
    r"\b(is|are|was|were) none\b",
    r"\b(for|of|and) none\b",
    r"\bso (many|much)\b(?! (as|that|for))",
    r"\b(came|comes|come) of\b",
    r"\b(goes|go|went|going) on\b(?! to )",
    r"\b(stands|stand|stood) (for|in|at|there|on|before|behind)\b",
    r"\bbears? on\b",
    r"\bwhat (is|was|are|has|have|had|it|they|others|else) "
    r"(said|asked|known|left|told|kept|shown|given|written|wrong|needed|read|sought|been)\b",
    r"\bwho (reads|asks|runs|waits|looks|watches|writes|began|made)\b",
    r"\b(by|of) whom(ever)?\b",
    r"\b(is|are|was|were) told( of| that| apart| by)?\b",
    r"\bthe one (of|between|after|before)\b",
    r"\b(lies|lie|lay) (in|on|over|below|beside|there)\b",
    r"\b(as|so) far as\b",
    r"\b(beside|instead of) (it|them|that)\b",
    r"\bno part of\b",
    r"\bthat is (one|none|not one)\b",
    r"\bof theirs\b|\bof ours\b",
]
PATTERN = re.compile("|".join(PHRASES))
COMMENT = re.compile(r"^\s*//[/!]?\s?(.*)$")


def comments_of(path):
    """The comment lines of a Rust file that hold text, with their line numbers."""
    for number, line in enumerate(path.read_text(encoding="utf8").splitlines(), 1):
        found = COMMENT.match(line)
        if found and found[1].strip():
            yield number, found[1].strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", type=pathlib.Path, nargs="+", metavar="PATH", help="a folder, or a Rust file")
    parser.add_argument("--list", action="store_true", help="print each hit with its file and line")
    parser.add_argument("--at-most", type=float, metavar="PERCENT", help="fail if a path has more hits than this")
    options = parser.parse_args()
    is_above = False
    for path in options.paths:
        files = [path] if path.is_file() else sorted(path.rglob("*.rs"))
        lines = [(file, *line) for file in files for line in comments_of(file)]
        hits = [line for line in lines if PATTERN.search(line[2])]
        percent = 100 * len(hits) / max(len(lines), 1)
        is_above |= options.at_most is not None and percent > options.at_most
        for file, number, text in hits if options.list else []:
            print(f"{file}:{number}: {text}")
        print(f"{path!s:20} {len(lines):6} lines {len(hits):5} hits {percent:6.2f}%")
    sys.exit(is_above)


main()
