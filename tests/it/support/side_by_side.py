# Runs the same cells in a Jupyter kernel and in the session of this program, and prints the outputs that differ.
# Run as `python side_by_side.py SESSION`, with ipykernel and jupyter_client installed.
import os
import re
import subprocess
import sys
import tempfile

from jupyter_client.manager import start_new_kernel

CELLS = [
    "x = 20\nprint('set')\nx + 1",
    "x;",
    "None",
    "%mkdir sub\n%cd sub\n!pwd",
    "%%writefile a.txt\none\ntwo",
    "%%writefile a.txt\none\ntwo\nthree",
    "%%writefile -a a.txt\nfour",
    "lines = !cat a.txt\nprint(list(lines), len(lines))",
    "name = 'a.txt'\n!wc -l {name} | \\\n  cut -d' ' -f1\n!echo $name",
    "!echo {1 + 1} $HOME_NOT_SET end",
    "!awk '{print $1}' a.txt",
    "!echo out; echo err >&2; exit 3",
    "%ls",
    "%env COLOUR=red",
    "%env COLOUR",
    "!echo $COLOUR",
    "%pwd",
    "text = '''\n!not a command\n%cd nowhere\n'''\n!echo ran\nlen(text)",
    "for i in range(2):\n    !echo {i}",
    "%%bash\nfor i in 1 2; do echo line $i; done",
    "%%bash\nfalse",
    "1 / 0",
    "def f(:",
    "undefined_name",
    "print(x)",
    "import sys\nprint('to stderr', file=sys.stderr)",
    "%cd -",
    "%cd sub\n%cd ..",
    "here = %pwd\nprint(here == __import__('os').getcwd())",
    "%%time\ny = 5\nprint(y)\ny + 1",
    "%time z = y + 1\nprint(z)",
    "%time y + 2",
    "%%time\n1 / 0",
    "%timeit -n 10 y + 1\nprint('timed')",
    "%%timeit\ny + 1",
    "%%capture\nprint('hidden')\n!echo also hidden",
    "%%capture kept\nprint('kept')",
    "print(kept.stdout)\nkept.show()",
    "import asyncio\nasync def later(value):\n    await asyncio.sleep(0)\n    return value\nawait later(3)",
    "v = await later(4)\nprint(v)",
    "async def not_run():\n    return 1\nprint(asyncio.iscoroutinefunction(not_run))",
    "%%nothing\nx",
]


def plain(text):
    text = re.sub(r"\x1b\[[0-9;]*m", "", text).replace("\r\n", "\n")
    # Compare only the last line of an exception, because a kernel formats the lines before it differently.
    if "Traceback (most recent call last)" in text or "SyntaxError" in text or "CalledProcessError" in text:
        text = text.strip().splitlines()[-1]
        text = re.sub(r" \(.*line \d+\)$", "", text).removeprefix("subprocess.")
    # Times differ between any two runs, and so do the words around them.
    if re.search(r"^CPU times:|^Wall time:| per loop", text, re.MULTILINE):
        kept = [line for line in text.splitlines() if not re.match(r"CPU times:|Wall time:|.* per loop", line)]
        text = "\n".join(["TIMES", *kept])
    return text.strip()


def kernel(cells, folder):
    manager, client = start_new_kernel(cwd=folder)
    outputs = []
    for code in cells:
        said = []

        def hook(message):
            content = message["content"]
            if message["msg_type"] == "stream":
                said.append(content["text"])
            elif message["msg_type"] == "execute_result":
                said.append(content["data"]["text/plain"] + "\n")
            elif message["msg_type"] == "error":
                said.append("\n".join(content["traceback"]) + "\n")

        client.execute_interactive(code, output_hook=hook, timeout=60)
        outputs.append(plain("".join(said)))
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    return outputs


def session(cells, folder, source):
    home = tempfile.mkdtemp()
    for name in ("in", "done"):
        os.mkfifo(f"{home}/{name}")
    process = subprocess.Popen([sys.executable, "-u", "-c", source, home], cwd=folder, stdin=subprocess.DEVNULL)
    hold = os.open(f"{home}/in", os.O_RDWR)

    word = f"{home}/word"

    def wait():
        # Completion shows from the file `word`; `done` only signals that the file may exist.
        while not os.path.exists(word):
            with open(f"{home}/done") as done:
                done.readline()

    wait()
    outputs = []
    for code in cells:
        os.remove(word)
        with open(f"{home}/code", "w") as file:
            file.write(code)
        os.write(hold, b"run\n")
        wait()
        with open(f"{home}/out", errors="replace") as file:
            outputs.append(plain(file.read()))
    process.kill()
    process.wait()
    return outputs


with open(sys.argv[1]) as file:
    ours = session(CELLS, tempfile.mkdtemp(prefix="w"), file.read())
theirs = kernel(CELLS, tempfile.mkdtemp(prefix="w"))
different = 0
for code, one, other in zip(CELLS, theirs, ours):
    one, other = (re.sub(r"/\S*/w\w+", "WORK", it) for it in (one, other))
    if sorted(one.split("\n")) != sorted(other.split("\n")):
        different += 1
        print(f"--- cell\n{code}\n--- kernel\n{one}\n--- session\n{other}\n")
print(f"{len(CELLS)} cells, {different} different")
sys.exit(different != 0)
