"""An independent judge of masking that uses Python's own `ast` and shares no code with the masking.

Reads frames from stdin and writes one JSON line per file to stdout. A frame is a JSON line, followed by `length` bytes:

    {"op": "file", "path": ..., "functions": [[label, first line, last line, async, generator, decorators, docstring]]}
    {"op": "mask", "labels": [...], "described": [...], "length": ...}     the masked text of that file
    {"op": "end"}                                                           answer now

The answer is {"rejected": why} if Python does not accept the original, or {"failures": [...]}.
"""

import ast
import inspect
import re
import sys

from frames import serve

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DESCRIPTION = sys.argv[1]
NESTING = "body", "handlers", "orelse", "finalbody", "cases"


class Wrong(Exception):
    """The masked text is not what it should be."""


def own_yield(function):
    """Whether the function's own body yields."""
    stack = list(function.body)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if isinstance(node, FUNCTIONS):
            stack.extend(node.decorator_list)
            stack.extend(node.args.defaults)
            stack.extend(default for default in node.args.kw_defaults if default)
        elif not isinstance(node, (ast.Lambda, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(node))
    return False


def functions_of(tree):
    """Returns [(label, node)] in source order, with `#k` for names that occur several times."""
    found = []
    stack = [(tree, "")]
    while stack:
        node, prefix = stack.pop()
        if isinstance(node, FUNCTIONS):
            found.append((prefix + node.name, node))
        if isinstance(node, FUNCTIONS + (ast.ClassDef,)):
            prefix += node.name + "."
        children = [child for field in NESTING for child in getattr(node, field, ()) if isinstance(child, ast.AST)]
        stack.extend((child, prefix) for child in reversed(children))
    found.sort(key=lambda pair: (pair[1].lineno, pair[1].col_offset))
    count = {}
    for name, _ in found:
        count[name] = count.get(name, 0) + 1
    seen = {}
    labelled = []
    for name, node in found:
        seen[name] = seen.get(name, 0) + 1
        labelled.append((f"{name}#{seen[name]}" if count[name] > 1 else name, node))
    return labelled


def docstring_of(function):
    """Returns the docstring's value, not cleaned, or None."""
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return first.value.value
    return None


def check_body(label, before, after, described):
    """Checks that the masked body is its docstring, or the description, and the raise, and nothing else."""
    own = docstring_of(before)
    body = list(after.body)
    if own is not None or described:
        if docstring_of(after) is None:
            raise Wrong(f"{label}: no docstring")
        value = docstring_of(after)
        if own is not None and value != own:
            raise Wrong(f"{label}: another docstring")
        if own is None and inspect.cleandoc(value) != DESCRIPTION:
            raise Wrong(f"{label}: another description: {value!r}")
        body = body[1:]
    statement = body[0] if len(body) == 1 else None
    if not (
        isinstance(statement, ast.Raise)
        and isinstance(statement.exc, ast.Name)
        and statement.exc.id == "NotImplementedError"
        and statement.cause is None
    ):
        raise Wrong(f"{label}: not just a raise: {ast.dump(after)[:300]}")


def compare(before, after, masked):
    """Checks that both trees are equal except for the masked bodies. Returns [(label, before, after)] of their functions.

    `masked` maps the id of a node of `before` to its label and whether it has a description.
    """
    pairs = []
    stack = [(before, after)]
    while stack:
        a, b = stack.pop()
        kind = type(a)
        if kind is not type(b):
            raise Wrong(f"line {getattr(a, 'lineno', '?')}: {kind.__name__} became {type(b).__name__}")
        if kind is list:
            if len(a) != len(b):
                raise Wrong(f"a list of {len(a)} became one of {len(b)}")
            stack.extend(zip(a, b))
            continue
        if not isinstance(a, ast.AST):
            if a != b and repr(a) != repr(b):
                raise Wrong(f"{a!r} became {b!r}")
            continue
        fields = kind._fields
        if id(a) in masked:
            label, described = masked[id(a)]
            check_body(label, a, b, described)
            pairs.append((label, a, b))
            fields = [field for field in fields if field != "body"]
        for field in fields:
            x, y = getattr(a, field, None), getattr(b, field, None)
            if x is not y:
                stack.append((x, y))
    pairs.sort(key=lambda pair: pair[1].lineno)
    return pairs


LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n|\Z)")


def lines_of(source):
    """Returns the lines, as Python counts them, with their endings. The first has index 1."""
    return [b"", *LINE.findall(source)]


def column(line):
    """Returns the column at which the line's text begins, with tabs counted like in Python."""
    line = line.lstrip(b"\xef\xbb\xbf").rpartition(b"\f")[2].expandtabs(8)
    return len(line) - len(line.lstrip(b" "))


def check_bytes(before, after, pairs):
    """Checks that signatures, and lines between masked functions except comments after a body, are kept to the byte."""
    last_before = last_after = depth = 0
    for label, a, b in pairs + [("the end", None, None)]:
        gap_before = before[last_before + 1 : a.lineno if a else None]
        gap_after = after[last_after + 1 : b.lineno if b else None]
        count = len(gap_before) - len(gap_after)
        if count < 0 or gap_before[count:] != gap_after:
            raise Wrong(f"the text before {label} changed: {gap_before[:5]!r}, {gap_after[:5]!r}")
        removed = gap_before[:count]
        if last_before == 0 and removed:
            raise Wrong(f"lines at the top were lost: {removed[:3]!r}")
        hints = [line for line in removed if line.strip()]
        if not all(line.strip().startswith(b"#") and column(line) > depth for line in hints):
            raise Wrong(f"lines before {label} were lost: {removed[:3]!r}")
        if removed and removed[-1] not in hints:
            raise Wrong(f"blank lines before {label} were lost")
        left = next((line for line in gap_after if line.strip()), b"")
        if last_before and left.strip().startswith(b"#") and column(left) > depth:
            raise Wrong(f"a hint before {label} was left: {left!r}")
        if a is None:
            return
        first = b.body[0]
        header = b"".join(after[b.lineno : first.lineno]).rstrip()
        if not b"".join(before[a.lineno : a.end_lineno + 1]).startswith(header):
            raise Wrong(f"the signature of {label} changed: {header!r}")
        if not (header.endswith(b":") or re.search(rb"#\s*type:[^\r\n]*$", header)):
            raise Wrong(f"the signature of {label} has something behind it: {header[-200:]!r}")
        last_before, last_after, depth = a.end_lineno, b.end_lineno, column(before[a.lineno])


class File:
    """One file of the original library."""

    def __init__(self, frame):
        with open(frame["path"], "rb") as file:
            source = file.read()
        self.tree = ast.parse(source)
        self.lines = lines_of(source)
        self.failures = []
        functions = functions_of(self.tree)
        self.functions = dict(functions)
        seen = [
            [
                label,
                node.lineno,
                node.end_lineno,
                isinstance(node, ast.AsyncFunctionDef),
                own_yield(node),
                len(node.decorator_list),
                docstring_of(node) is not None,
            ]
            for label, node in functions
        ]
        if seen != frame["functions"]:
            differing = [pair for pair in zip(seen, frame["functions"]) if pair[0] != pair[1]][:3]
            self.failures.append(f"{len(seen)} functions against {len(frame['functions'])}: {differing}")

    def check(self, frame, source):
        try:
            after = ast.parse(source)
            masked = {
                id(self.functions[label]): (label, described)
                for label, described in zip(frame["labels"], frame["described"])
            }
            pairs = compare(self.tree, after, masked)
            if len(pairs) != len(masked):
                raise Wrong(f"{len(pairs)} of {len(masked)} functions are masked")
            check_bytes(self.lines, lines_of(source), pairs)
        except (Wrong, SyntaxError, ValueError, KeyError) as error:
            self.failures.append(f"{frame['labels'][:5]}: {type(error).__name__}: {error}")

    def answer(self):
        return {"failures": self.failures}


serve(File)
