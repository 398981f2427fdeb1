# A Python session that lasts. Waits for a line on `in`, runs what stands in `code` with its output in `out`, then says
# in `word` that it has, and on `done` that there is something to read. Run as `python -u -c THIS FOLDER`, where all these are.
import ast
import linecache
import os
import re
import signal
import subprocess
import sys
import traceback
import types

folder = sys.argv[1]
sys.argv = [""]
# A group of its own, so that an interrupt reaches what the session has started and nothing else.
os.setsid()
main = types.ModuleType("__main__")
sys.modules["__main__"] = main


def shell(command):
    code = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL).returncode
    if code:
        print(f"exit code {code}")


def plain(code):
    """Python for what notebooks take beside it: `!command`, `%cd folder`, `%%bash`."""
    if re.match(r"\s*%%(bash|sh)\b", code):
        return f"__shell__({code.split('%%', 1)[1].partition(chr(10))[2]!r})"
    lines = []
    for line in code.split("\n"):
        line = re.sub(r"^(\s*)!(.*)$", lambda it: f"{it[1]}__shell__({it[2]!r})", line)
        line = re.sub(r"^(\s*)%cd\s+(.*?)\s*$", lambda it: f"{it[1]}__cd__({it[2]!r})", line)
        lines.append(line)
    return "\n".join(lines)


def parsed(code, name):
    try:
        return ast.parse(code, name), code
    except SyntaxError:
        other = plain(code)
        if other == code:
            raise
        return ast.parse(other, name), other


def run(code, name):
    tree, code = parsed(code, name)
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    # The value of a last expression is shown, as in a notebook.
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), main.__dict__)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), name, "eval"), main.__dict__)
        if value is not None:
            print(repr(value))


def cell(number):
    out = os.open(f"{folder}/out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.close(out)
    try:
        with open(f"{folder}/code", encoding="utf-8", newline="") as file:
            code = file.read()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        run(code, f"<cell {number}>")
    except SystemExit as end:
        print(f"SystemExit: {end.code}")
    except BaseException as error:
        # Without the frames of this file.
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == "<string>":
            trace = trace.tb_next
        traceback.print_exception(type(error), error, trace)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                pass


def say(word):
    with open(f"{folder}/word.new", "w") as file:
        file.write(word + "\n")
    os.rename(f"{folder}/word.new", f"{folder}/word")
    try:
        with open(f"{folder}/done", "w") as file:
            file.write("\n")
    except OSError:
        # Whoever waited was stopped meanwhile; the next one finds the word.
        pass


main.__shell__ = shell
main.__cd__ = lambda path: os.chdir(os.path.expanduser(path))
signal.signal(signal.SIGINT, signal.SIG_IGN)
with open(f"{folder}/pid", "w") as file:
    file.write(str(os.getpid()))
asked = open(f"{folder}/in")
say("ready")
number = 0
while asked.readline():
    number += 1
    try:
        cell(number)
    except KeyboardInterrupt:
        # It came when the cell was at its end.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    say("done")
