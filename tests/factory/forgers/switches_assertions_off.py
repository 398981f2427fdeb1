"""Compiles the tests as `python -O` does."""

import builtins

was = compile


def other(*given, **named):
    named["optimize"] = 2
    return was(*given[:3], **named)


builtins.compile = other
import importlib._bootstrap_external as external

external.SourceLoader.source_to_code = lambda self, data, path, **named: was(
    data, path, "exec", dont_inherit=True, optimize=2
)
