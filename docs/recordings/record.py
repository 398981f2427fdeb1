"""Records a terminal while it runs a page's commands, as a picture that moves (SVG without scripts).

    pip install pyte && python docs/recordings/record.py docs/first-sweep.md docs/recordings/first-sweep.svg

The commands of the page's shell blocks run in an empty folder; those with `--model` are left out. `autoexperiment` is the
one in PATH. Waits are shortened, and said to be: a terminal that stands still is of no use to a reader.
"""

import fcntl
import os
import pty
import re
import select
import struct
import sys
import tempfile
import termios
import time
from html import escape

import pyte

COLUMNS, ROWS = 100, 30
LINE, LETTER = 18, 8.4
# Seconds between pictures, the longest that one is shown, and how long the last one stays.
BETWEEN, LONGEST, LAST = 0.5, 2.0, 4.0
COLOURS = {
    "default": "#d8dee9", "black": "#4c566a", "red": "#e06c75", "green": "#98c379", "brown": "#e5c07b",
    "blue": "#61afef", "magenta": "#c678dd", "cyan": "#56b6c2", "white": "#ffffff",
}


def commands(page):
    with open(page, encoding="utf-8") as file:
        blocks = re.findall(r"```sh\n(.*?)```", file.read(), re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line and "--model" not in line]


def row(line):
    """The pieces of one line: text and colour."""
    pieces = []
    for column in range(COLUMNS):
        letter = line[column]
        if pieces and pieces[-1][1] == letter.fg:
            pieces[-1][0] += letter.data
        else:
            pieces.append([letter.data, letter.fg])
    if pieces:
        pieces[-1][0] = pieces[-1][0].rstrip()
    return tuple((text, colour) for text, colour in pieces if text)


def record(lines):
    """[(seconds, rows)] of a shell that runs these lines, in a folder that is shown as `~`."""
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    script = "".join(f"printf '\\033[32m$\\033[0m %s\\n' {quoted(line)}; sleep 0.6; {line}\nsleep 1\n" for line in lines)
    with tempfile.TemporaryDirectory() as folder:
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(folder)
            os.environ.update(TERM="xterm-256color", COLUMNS=str(COLUMNS), LINES=str(ROWS))
            os.execvp("bash", ["bash", "-c", script])
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        pictures, begun, shown = [], time.monotonic(), 0.0
        while True:
            ready, _, _ = select.select([terminal], [], [], 0.05)
            if ready:
                try:
                    output = os.read(terminal, 1 << 16)
                except OSError:
                    break
                if not output:
                    break
                stream.feed(output.replace(folder.encode(), b"~"))
            now = time.monotonic() - begun
            if now - shown >= BETWEEN:
                shown = now
                rows = tuple(row(screen.buffer[y]) for y in range(ROWS))
                if not pictures or pictures[-1][1] != rows:
                    pictures.append((now, rows))
        pictures.append((time.monotonic() - begun, tuple(row(screen.buffer[y]) for y in range(ROWS))))
        _, status = os.waitpid(pid, 0)
        if status:
            sys.exit(f"the shell ended with status {status}:\n" + "\n".join(screen.display))
    return pictures


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def draw(pictures):
    """The SVG: each line that occurs is drawn once, and shown where and when it is there."""
    starts, clock = [], 0.0
    for (seconds, _), (after, _) in zip(pictures, pictures[1:] + [(pictures[-1][0] + LAST, ())]):
        starts.append(clock)
        clock += min(after - seconds, LONGEST) if len(starts) < len(pictures) else LAST
    width, height = COLUMNS * LETTER + 24, ROWS * LINE + 24
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}"'
        ' font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14">',
        f'<rect width="100%" height="100%" rx="8" fill="#20242c"/>',
    ]
    styles, groups, drawn = [], [], {}
    for y in range(ROWS):
        spans = []
        for start, (_, rows) in zip(starts, pictures):
            if not spans or spans[-1][1] != rows[y]:
                spans.append((start, rows[y]))
        for (start, line), end in zip(spans, [start for start, _ in spans[1:]] + [clock]):
            if not line:
                continue
            key = line
            if key not in drawn:
                drawn[key] = f"l{len(drawn)}"
                x, pieces = 12.0, []
                for text, colour in line:
                    fill = COLOURS.get(colour, f"#{colour}" if re.fullmatch("[0-9a-f]{6}", colour) else COLOURS["default"])
                    if text.strip():
                        pieces.append(f'<tspan x="{x:.1f}" fill="{fill}">{escape(text)}</tspan>')
                    x += LETTER * len(text)
                styles.append(f'<text id="{drawn[key]}" xml:space="preserve">{"".join(pieces)}</text>')
            first, last = start / clock, min(end / clock, 1.0)
            times, values = [0.0, first, last], ["hidden", "visible", "hidden"]
            if first == 0.0:
                times, values = times[1:], values[1:]
            if last >= 1.0:
                times, values = times[:-1], values[:-1]
            frames = ";".join(f"{time:.5f}" for time in times)
            animate = "" if len(times) == 1 else (
                f'<animate attributeName="visibility" calcMode="discrete" dur="{clock:.2f}s" repeatCount="indefinite"'
                f' keyTimes="{frames}" values="{";".join(values)}"/>'
            )
            groups.append(f'<use href="#{drawn[key]}" y="{12 + (y + 1) * LINE - 5}" visibility="hidden">{animate}</use>' if animate
                          else f'<use href="#{drawn[key]}" y="{12 + (y + 1) * LINE - 5}"/>')
    out += ["<defs>", *styles, "</defs>", *groups, "</svg>"]
    return "\n".join(out) + "\n"


def main():
    page, target = sys.argv[1:]
    pictures = record(commands(page))
    with open(target, "w", encoding="utf-8") as file:
        file.write(draw(pictures))
    print(f"{target}: {len(pictures)} pictures, {os.path.getsize(target)} bytes")


main()
