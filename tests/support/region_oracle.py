"""An independent judge of masked regions that uses Python's own `ast` and compiler and shares no code with the masking.

Reads frames from stdin and writes one JSON line per file to stdout. A frame is a JSON line, followed by `length` bytes:

    {"op": "file", "path": ...}
    {"op": "mask", "label": ..., "line": of def, "first": line, "last": line, "length": ...}   the masked text
    {"op": "end"}                                                                            answer now

The answer is {"rejected": why} if Python does not accept the original, or {"failures": [...], "compound": count}.
"""

import ast
import re

from frames import serve

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n|\Z)")


class Wrong(Exception):
    """The masked text is not what it should be."""


def begins(statement):
    """Returns the line on which a statement begins, including decorators."""
    decorators = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def own_blocks(node):
    """Yields the lists of statements in a function, without those of functions and classes inside it."""
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block
            for statement in block:
                if not isinstance(statement, FUNCTIONS + (ast.ClassDef,)):
                    yield from own_blocks(statement)
    for field in ("handlers", "cases"):
        for part in getattr(node, field, []):
            yield from own_blocks(part)


def compare(before, after, block, span):
    """Checks that both trees are equal, except that one raise replaces the statements `span` of `block`."""
    stack = [(before, after)]
    met = False
    while stack:
        a, b = stack.pop()
        if a is block:
            start, end = span
            left = b[start] if len(b) == len(a) - (end - start) + 1 else None
            alone = (
                isinstance(left, ast.Raise)
                and isinstance(left.exc, ast.Name)
                and left.exc.id == "NotImplementedError"
                and left.cause is None
            )
            if not alone:
                raise Wrong("no raise is in the place of the region")
            met = True
            a, b = a[:start] + a[end:], b[:start] + b[start + 1 :]
        if type(a) is not type(b):
            raise Wrong(f"{type(a).__name__} became {type(b).__name__}")
        if isinstance(a, list):
            if len(a) != len(b):
                raise Wrong(f"a list of {len(a)} became one of {len(b)}")
            stack.extend(zip(a, b))
        elif isinstance(a, ast.AST):
            stack.extend((getattr(a, field, None), getattr(b, field, None)) for field in a._fields)
        elif a != b and repr(a) != repr(b):
            raise Wrong(f"{a!r} became {b!r}")
    if not met:
        raise Wrong("the region's block was not met")


def check_bytes(before, after, first, last):
    """Checks that only the region's own lines and comments next to it are gone, and that all others are unchanged."""
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    if len(after) - head - tail not in (0, 1):
        raise Wrong(f"{len(after) - head - tail} lines are new")
    # If a region itself ends in such a raise, that line is equal before and after.
    removed = range(head, len(before) - tail)
    for number in removed:
        line = before[number].strip()
        if not first - 1 <= number < last and line and not line.startswith(b"#"):
            raise Wrong(f"line {number + 1} is gone: {line!r}")
    new = after[head : len(after) - tail]
    for line in new:
        indent = before[first - 1][: len(before[first - 1]) - len(before[first - 1].lstrip())]
        if line.rstrip(b"\r\n") != indent + b"raise NotImplementedError":
            raise Wrong(f"in the place of the region is {line!r}")


class File:
    """One file of the original library."""

    def __init__(self, frame):
        with open(frame["path"], "rb") as file:
            source = file.read()
        self.tree = ast.parse(source)
        compile(source, "original", "exec", dont_inherit=True)
        self.lines = LINE.findall(source)
        self.functions = {
            (node.lineno, node.name): node for node in ast.walk(self.tree) if isinstance(node, FUNCTIONS)
        }
        self.failures = []
        self.compound = 0

    def check(self, frame, source):
        label, first, last = frame["label"], frame["first"], frame["last"]
        try:
            name = label.split("#")[0].rsplit(".", 1)[-1]
            function = self.functions[frame["line"], name]
            found = [
                (block, start, end + 1)
                for block in own_blocks(function)
                for start in range(len(block))
                for end in range(start, len(block))
                if begins(block[start]) == first and block[end].end_lineno == last
            ]
            if not found:
                raise Wrong(f"no neighbours of a block go from line {first} to {last}")
            # Of a loop and a statement on the same lines, take the outer one.
            block, start, end = found[0]
            self.compound += any(hasattr(statement, "body") for statement in block[start:end])
            compile(source, "masked", "exec", dont_inherit=True)
            compare(self.tree, ast.parse(source), block, (start, end))
            check_bytes(self.lines, LINE.findall(source), first, last)
        except (Wrong, SyntaxError, ValueError, KeyError) as error:
            self.failures.append(f"{label} {first}-{last}: {type(error).__name__}: {error}")

    def answer(self):
        return {"failures": self.failures, "compound": self.compound}


serve(File)
