"""Makes mutants of functions: copies with one small change each."""

import ast
import copy
import inspect
import itertools
import textwrap
import types

# Maximum number of mutants of a function.
MOST_MUTANTS = 150


def tree_of(called):
    """Returns the syntax tree of a function's source; an empty tree if the source is unknown or cannot be parsed by
    itself."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(called)))
    except (SyntaxError, OSError, TypeError, IndexError, AttributeError):
        return ast.parse("")


def mutants_of(called, chance):
    """Returns mutants of a function; none if its source, compiled by itself, gives another function."""
    tree = tree_of(called)
    # `__class__` is a free variable of each function that calls `super()`. Other free variables are not supported.
    if set(called.__code__.co_freevars) - {"__class__"} or not tree.body or not isinstance(tree.body[0], ast.FunctionDef):
        return []
    tree.body[0].decorator_list = []
    changes = [
        (number, change) for number, node in enumerate(nodes_of(tree)) for change in range(len(changes_of(node)))
    ]
    chance.shuffle(changes)
    found = []
    for number, change in changes[:MOST_MUTANTS]:
        copied = copy.deepcopy(tree)
        node = next(itertools.islice(nodes_of(copied), number, None))
        changes_of(node)[change]()
        code = compiled(copied.body[0], called)
        if code:
            closure = called.__closure__ if code.co_freevars else None
            mutant = types.FunctionType(code, called.__globals__, called.__name__, called.__defaults__, closure)
            mutant.__kwdefaults__ = called.__kwdefaults__
            found.append(mutant)
    return found


def nodes_of(tree):
    """Yields the nodes of a function's syntax tree that determine what it does: the function itself, and the nodes of
    its body without the docstring."""
    definition = tree.body[0]
    has_docstring = ast.get_docstring(definition, clean=False) is not None
    yield definition
    for statement in definition.body[has_docstring:]:
        yield from ast.walk(statement)


def compiled(definition, called):
    """Compiles a function's changed definition, and returns its code; `None` if that is not possible. A method is
    compiled inside a class of the same name as its own, because private names (`__x`) depend on the name of the
    class."""
    owner = called.__qualname__.rpartition(".")[0].rpartition(".")[2]
    tree = ast.parse(f"class {owner}: pass" if owner.isidentifier() else "")
    (tree.body[0] if tree.body else tree).body = [definition]
    try:
        code = compile(ast.fix_missing_locations(tree), "<mutant>", "exec")
    except Exception:
        return None
    for name in [owner, definition.name] if owner.isidentifier() else [definition.name]:
        code = next(one for one in code.co_consts if isinstance(one, types.CodeType) and one.co_name == name)
    return code if set(code.co_freevars) <= set(called.__code__.co_freevars) else None


OTHER_OPERATORS = {
    ast.Lt: [ast.LtE, ast.Gt],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.Lt],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq, ast.LtE, ast.GtE],
    ast.NotEq: [ast.Eq],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Add],
    ast.Div: [ast.FloorDiv],
    ast.FloorDiv: [ast.Div],
    ast.Mod: [ast.FloorDiv],
    ast.And: [ast.Or],
    ast.Or: [ast.And],
}


def is_none(node):
    return isinstance(node, ast.Constant) and node.value is None


def is_call_without_arguments(node):
    """Whether a node calls a method without arguments."""
    return isinstance(node.func, ast.Attribute) and not node.args and not node.keywords


def put_all(node, **fields):
    for name, value in fields.items():
        setattr(node, name, value)


def changes_of(node):
    """Returns functions, each of which makes one change of this node."""
    found = []
    put = lambda name, value: found.append(lambda: setattr(node, name, value))
    if isinstance(node, ast.Constant) and type(node.value) in (int, float, bool, str):
        value = node.value
        others = [not value] if type(value) is bool else [value + "x", ""] if type(value) is str else [value + 1, value - 1]
        for other in others:
            put("value", other)
    if isinstance(node, ast.Compare):
        for other in OTHER_OPERATORS.get(type(node.ops[0]), ()):
            put("ops", [other(), *node.ops[1:]])
        if isinstance(node.ops[0], (ast.Is, ast.IsNot)) and is_none(node.comparators[0]) and len(node.ops) == 1:
            # `not x` in place of `x is None` differs for empty values and zeros.
            truth, wanted = ast.UnaryOp(ast.Not(), node.left), ast.Constant(isinstance(node.ops[0], ast.Is))
            found.append(lambda: put_all(node, left=truth, ops=[ast.Eq()], comparators=[wanted]))
    if isinstance(node, (ast.BinOp, ast.BoolOp, ast.AugAssign)):
        for other in OTHER_OPERATORS.get(type(node.op), ()):
            put("op", other())
    if isinstance(node, ast.BoolOp):
        for place in range(len(node.values)):
            rest = node.values[:place] + node.values[place + 1 :]
            put("values", rest if len(rest) > 1 else rest * 2)
    if isinstance(node, (ast.For, ast.While)):
        put("body", [*node.body, ast.Break()])
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        for other in (True, False):
            if not isinstance(node, ast.While) or not other:
                put("test", ast.Constant(other))
    if isinstance(node, ast.Call) and node.args:
        for place in range(len(node.args)):
            put("args", node.args[:place] + node.args[place + 1 :])
    if isinstance(node, ast.Call):
        for place in range(len(node.keywords)):
            put("keywords", node.keywords[:place] + node.keywords[place + 1 :])
        # Replace a call by its only argument or, without arguments, by its object, as if the called function changed nothing.
        unchanged = node.args if len(node.args) == 1 else [node.func.value] if is_call_without_arguments(node) else []
        if unchanged and not isinstance(unchanged[0], ast.Starred):
            found.append(lambda: put_all(node, func=ast.parse("lambda value: value").body[0].value, args=unchanged, keywords=[]))
    for field in ("body", "orelse"):
        statements = getattr(node, field, None)
        if isinstance(statements, list) and statements and isinstance(statements[0], ast.stmt):
            for place, statement in enumerate(statements):
                if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
                    put(field, [*statements[:place], ast.Pass(), *statements[place + 1 :]])
    return found

