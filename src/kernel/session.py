# A long-lived Python session that runs notebook cells. For each line from the pipe `in`, runs the code in the file
# `code` with its output in the file `out`, writes the cell's state to the file `word`, and signals on the pipe `done`.
# All of these are in FOLDER; the session is started as `python -u -c THIS_FILE FOLDER`. Standard library only.
import ast
import inspect
import io
import linecache
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import timeit
import tokenize
import traceback
import types

folder = sys.argv[1]
sys.argv = [""]
# Lead a new process group, so that an interrupt reaches only this process and the processes that it has started.
os.setsid()
main = types.ModuleType("__main__")
sys.modules["__main__"] = main
# Whether a shell command of the current cell failed. As in a notebook, this raises no exception.
failed = False
before = os.getcwd()
# The event loop of cells that use `await`.
loop = None

ALIASES = {"ls": "ls -F", "ll": "ls -lF", "mkdir": "mkdir", "rmdir": "rmdir", "cat": "cat", "cp": "cp", "mv": "mv", "rm": "rm"}
MAGIC = re.compile(r"(?P<indent>\s*)(?:(?P<target>[A-Za-z_][\w.]*)\s*=\s*)?(?P<sign>!!?|%(?!%))(?P<text>.*)", re.DOTALL)


def expanded(text):
    """Replaces `{expression}` and `$name` by their values, as notebooks do; on an error, returns `text` unchanged."""
    def value(expression):
        return str(eval(expression, main.__dict__))
    try:
        done = re.sub(r"(?<!\$)\{([^{}]+)\}", lambda it: value(it[1]), text)
        # Do not replace names within single quotes.
        names = r"\$\$|\$([A-Za-z_][\w.]*)(?=(?:[^']*'[^']*')*[^']*$)"
        return re.sub(names, lambda it: value(it[1]) if it[1] else "$", done)
    except Exception:
        return text


def command(text, keep=False):
    global failed
    sys.stdout.flush()
    sys.stderr.flush()
    stdout = subprocess.PIPE if keep else None
    done = subprocess.run(["bash", "-c", text], stdin=subprocess.DEVNULL, stdout=stdout)
    main._exit_code = done.returncode
    failed = failed or done.returncode != 0
    return done.stdout.decode(errors="replace").splitlines() if keep else None


def shell(text):
    command(expanded(text))


def lines_of(text):
    return command(expanded(text), keep=True)


def magic(text):
    """Runs a line magic, such as `%cd`, and returns its value, which code can assign like that of any expression."""
    global before
    name, _, rest = expanded(text.strip()).partition(" ")
    rest = rest.strip()
    if name in ALIASES:
        return command(f"{ALIASES[name]} {rest}")
    if name == "pip":
        command(f"{shlex.quote(sys.executable)} -m pip {rest}")
        print("Note: you may need to restart the kernel to use updated packages.")
    elif name == "pwd":
        return os.getcwd()
    elif name == "cd":
        here = os.getcwd()
        os.chdir(before if rest == "-" else os.path.expanduser(rest.strip("\"'") or "~"))
        before = here
        print(os.getcwd())
    elif name in ("env", "set_env"):
        if not rest:
            return dict(os.environ)
        key, _, value = (rest.partition("=") if "=" in rest else rest.partition(" "))
        if not value and "=" not in rest:
            return os.environ.get(key) if key in os.environ else usage(f"Environment does not have key: {key}")
        os.environ[key.strip()] = value.strip()
        print(f"env: {key.strip()}={value.strip()}")
    elif name == "time":
        return timed(rest, "<timed>")
    elif name == "timeit":
        timed_often(rest)
    elif name not in ("matplotlib", "load_ext", "autoreload", "config"):
        usage(f"Line magic function `%{name}` not found.")


def usage(what):
    global failed
    failed = True
    print(f"UsageError: {what}", file=sys.stderr)


def timed(code, name):
    """Runs code like a cell, prints how long it took, and returns the value of a last expression."""
    wall, cpu = time.perf_counter(), time.process_time()
    value = evaluated(code, name)
    print(f"CPU times: total: {time.process_time() - cpu:.3g} s\nWall time: {time.perf_counter() - wall:.3g} s")
    return value


def timed_often(text):
    """Runs `%timeit`: measures how long the statement in the text takes. Options give the number of loops and of runs."""
    options = re.match(r"(?:-\w+\s*\d*\s+)*", text)[0]
    number = lambda name, other: int((re.search(rf"-{name}\s*(\d+)", options) or [0, other])[1])
    timer = timeit.Timer(text[len(options):], globals=main.__dict__)
    loops = number("n", 0) or timer.autorange()[0]
    took = min(timer.repeat(number("r", 3), loops))
    print(f"{took / loops:.3g} s per loop ({loops:,} loops)")


class Captured:
    """What `%%capture NAME` binds to the name."""

    def __init__(self, stdout):
        self.stdout, self.stderr = stdout, ""

    def show(self):
        print(self.stdout, end="")

    __call__ = show
    __str__ = lambda self: self.stdout


def captured(code, name, target):
    """Runs code like a cell without showing its output, which `target` is bound to, if that is a name."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            run(code, name)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for descriptor, number in zip(kept, (1, 2)):
                os.dup2(descriptor, number)
                os.close(descriptor)
            file.seek(0)
            if target:
                setattr(main, target, Captured(file.read().decode(errors="replace")))


def cell_magic(code, cell):
    """Runs a cell that begins with `%%`, a magic that applies to the whole cell."""
    global failed
    head, _, body = code.lstrip().partition("\n")
    name, _, rest = head[2:].strip().partition(" ")
    # In tracebacks, lines count from the magic.
    whole = code[: code.index(head)] + "\n" + body
    if name == "time":
        show(timed(f"{rest.strip()}{whole}", cell), whole)
    elif name == "timeit":
        magic(f"timeit {rest}".rstrip() if rest.strip() and not body.strip() else f"timeit {body}")
    elif name == "capture":
        captured(whole, cell, next((word for word in rest.split() if word.isidentifier()), None))
    elif name in ("bash", "sh"):
        sys.stdout.flush()
        status = subprocess.run([name, "-c", body], stdin=subprocess.DEVNULL).returncode
        if status:
            failed = True
            raise subprocess.CalledProcessError(status, (body.rstrip("\n") + "\n").encode())
    elif name in ("writefile", "file"):
        words = shlex.split(expanded(rest))
        path = os.path.expanduser(words[-1]) if words else ""
        if not path or path == "-a":
            return usage("%%writefile takes the name of a file")
        append = "-a" in words[:-1]
        print(f"{'Appending to' if append else 'Overwriting' if os.path.exists(path) else 'Writing'} {words[-1]}")
        with open(path, "a" if append else "w", encoding="utf-8") as file:
            # A cell does not end with a line break, but the file must.
            file.write(body if body.endswith("\n") else body + "\n")
    else:
        usage(f"Cell magic `%%{name}` not found.")


def is_open(text):
    """Whether the text ends within a string or brackets, so that the next line does not begin a statement."""
    if text.rstrip("\n").endswith("\\"):
        return True
    try:
        for _ in tokenize.generate_tokens(io.StringIO(text).readline):
            pass
    except tokenize.TokenError:
        return True
    except (SyntaxError, IndentationError):
        pass
    return False


def plain(code):
    """Returns the code with notebook syntax (`!command`, `%magic`) replaced by Python calls."""
    done, lines = [], code.split("\n")
    while lines:
        line = lines.pop(0)
        found = MAGIC.fullmatch(line)
        if not found or is_open("".join(it + "\n" for it in done)):
            done.append(line)
            continue
        text, more = found["text"], 0
        while text.endswith("\\") and lines:
            text, more = text[:-1] + lines.pop(0), more + 1
        if found["sign"] == "%":
            call = f"__magic__({text!r})"
        else:
            call = f"{'__lines__' if found['target'] or found['sign'] == '!!' else '__shell__'}({text!r})"
        target = f"{found['target']} = " if found["target"] else ""
        # Keep the number of lines, so that line numbers in tracebacks are right.
        done += [found["indent"] + target + call] + [""] * more
    return "\n".join(done)


def parsed(code, name):
    try:
        return ast.parse(code, name), code
    except SyntaxError:
        other = plain(code)
        if other == code:
            raise
        return ast.parse(other, name), other


def run(code, name):
    if code.lstrip().startswith("%%"):
        return cell_magic(code, name)
    show(evaluated(code, name), code)


def evaluated(code, name):
    """Runs code, and returns the value of a last expression."""
    tree, code = parsed(code, name)
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    value_of(tree, name, "exec")
    return None if last is None else value_of(ast.Expression(last.value), name, "eval")


def value_of(tree, name, mode):
    """Runs parsed code, which may use `await` outside of functions, as in a notebook."""
    global loop
    # Python 3.8 was the first to allow it.
    code = compile(tree, name, mode, getattr(ast, "PyCF_ALLOW_TOP_LEVEL_AWAIT", 0))
    if not code.co_flags & inspect.CO_COROUTINE:
        return eval(code, main.__dict__)
    import asyncio

    if loop is None:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
    return loop.run_until_complete(eval(code, main.__dict__))


def show(value, code):
    """Shows the value of a last expression, as in a notebook, unless a semicolon ends the code."""
    if value is not None and not quiet(code):
        main._ = value
        print(repr(value))


def quiet(code):
    try:
        kept = [token for token in tokenize.generate_tokens(io.StringIO(code).readline) if token.string.strip() and token.type != tokenize.COMMENT]
    except (tokenize.TokenError, SyntaxError):
        return False
    return bool(kept) and kept[-1].string == ";"


def cell(number):
    global failed
    failed, word = False, "done"
    out = os.open(f"{folder}/out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.close(out)
    try:
        with open(f"{folder}/code", encoding="utf-8", newline="") as file:
            code = file.read()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        run(code, f"<cell {number}>")
        word = "failed" if failed else "done"
    except SystemExit as end:
        word = "raised"
        print(f"SystemExit: {end.code}")
    except BaseException as error:
        word = "raised"
        # Leave out the frames of this file.
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
    return word


def say(word):
    with open(f"{folder}/word.new", "w") as file:
        file.write(word + "\n")
    os.rename(f"{folder}/word.new", f"{folder}/word")
    try:
        with open(f"{folder}/done", "w") as file:
            file.write("\n")
    except OSError:
        # The command that waited at the pipe was stopped meanwhile; the next command finds the file `word`.
        pass


main.__shell__ = shell
main.__lines__ = lines_of
main.__magic__ = magic
if "" not in sys.path:
    sys.path.insert(0, "")
signal.signal(signal.SIGINT, signal.SIG_IGN)
with open(f"{folder}/pid", "w") as file:
    file.write(str(os.getpid()))
asked = open(f"{folder}/in")
say("ready")
number = 0
while asked.readline():
    number += 1
    try:
        word = cell(number)
    except KeyboardInterrupt:
        # The interrupt arrived just as the cell ended.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        word = "raised"
    say(word)
