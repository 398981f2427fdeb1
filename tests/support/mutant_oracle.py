"""Judges mutants: does Python compile them, and does its syntax tree see the change?

Reads frames from stdin, a line of JSON followed by `length` bytes: {"op": "file", "line": def's line, "length": n} with
the original text, then any number of {"op": "mutant", "id": ..., "length": n} of that function. Answers each mutant with
a line of JSON: null, or a fault. Only the top-level statement that contains the function is compiled again.
"""

import ast
import json
import sys
import warnings

warnings.simplefilter("ignore")


def main():
    source, start, end, original = b"", 0, 0, ""
    while header := sys.stdin.buffer.readline():
        frame = json.loads(header)
        text = sys.stdin.buffer.read(frame["length"])
        if frame["op"] == "file":
            source, line = text, frame["line"]
            offsets = [0]
            for part in source.splitlines(keepends=True):
                offsets.append(offsets[-1] + len(part))
            for node in ast.parse(source).body:
                first = min([node.lineno] + [it.lineno for it in getattr(node, "decorator_list", [])])
                if first <= line <= node.end_lineno:
                    start, end = offsets[first - 1], offsets[node.end_lineno]
            original = ast.dump(ast.parse(source[start:end]))
            continue
        wrong = None
        if text[:start] != source[:start] or text[len(text) - (len(source) - end):] != source[end:]:
            wrong = "changed outside of its top-level statement"
        else:
            part = text[start:len(text) - (len(source) - end)]
            try:
                compile(part, "mutant", "exec", dont_inherit=True)
                if ast.dump(ast.parse(part)) == original:
                    wrong = "the syntax tree is the same"
            except (SyntaxError, ValueError) as error:
                wrong = str(error)
        print(json.dumps(wrong), flush=True)


main()
