#!/usr/bin/env python3
"""Measures attempts that wait for a model: many at once, each with a few replies that take long.

    benches/waiting.py [--attempts 1000] [--replies 3] [--seconds 20] [-- OPTION...]

Starts a model server on this machine, whose replies take the given seconds and each run `echo`, but for the last one, which
answers. Runs `react` on the primer with all attempts at once and the given OPTIONs (the program is that of
AUTOEXPERIMENT_PROGRAM, or in PATH), and prints the harness's largest memory, threads and descriptors, its CPU time, the
processes and memory below it, and the attempts and calls that were recorded.
"""

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT / "benches/support"))
from processes import below, descriptors, memory, share_of_memory, threads  # noqa: E402


def reply(number, is_last):
    """A reply of the chat completions interface: a call of a tool, or an answer."""
    name, arguments = ("final_answer", {"answer": "{}"}) if is_last else ("command_line", {"command": "echo"})
    call = {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return json.dumps({
        "id": f"reply_{number}", "object": "chat.completion", "created": 0, "model": "waiting",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": None, "tool_calls": [call]}}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }).encode()


class Server:
    """Answers every request after some seconds."""

    def __init__(self, replies, seconds):
        self.replies, self.seconds, self.calls, self.port = replies, seconds, 0, None
        self.is_ready = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self.serve()), daemon=True).start()
        self.is_ready.wait()

    async def serve(self):
        server = await asyncio.start_server(self.connection, "127.0.0.1", 0, backlog=4096)
        self.port = server.sockets[0].getsockname()[1]
        self.is_ready.set()
        await server.serve_forever()

    async def connection(self, reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = next(int(line.split(":")[1]) for line in head.splitlines() if line.startswith("content-length:"))
                request = json.loads(await reader.readexactly(length))
                made = sum(message["role"] == "assistant" for message in request["messages"])
                await asyncio.sleep(self.seconds)
                self.calls += 1
                body = reply(self.calls, made + 1 >= self.replies)
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, StopIteration):
            writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attempts", type=int, default=1000)
    parser.add_argument("--replies", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("options", nargs="*")
    given = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    server = Server(given.replies, given.seconds)
    largest = dict.fromkeys(["memory_mb", "threads", "descriptors", "processes_below", "memory_below_mb"], 0)
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.Popen(
            [os.environ.get("AUTOEXPERIMENT_PROGRAM", "autoexperiment"), "run", "--suite", PROJECT / "docs/results/primer",
             "--runs", folder, "--name", "r", "-n", "1", "--limit", "1", "-k", str(given.attempts), "-j", str(given.attempts),
             "--agent", "react", "--model", "waiting", "--base-url", f"http://127.0.0.1:{server.port}/v1",
             "--price", "0,0", "--no-baseline", "--no-verify", *given.options],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "OPENAI_API_KEY": "none"})
        said = []
        reading = threading.Thread(target=lambda: said.extend(run.stderr.read().decode().splitlines()))
        reading.start()
        begun = time.monotonic()
        while run.poll() is None:
            others = below(run.pid)
            now = {"memory_mb": memory(run.pid), "threads": threads(run.pid), "descriptors": descriptors(run.pid),
                   "processes_below": len(others), "memory_below_mb": sum(map(share_of_memory, others))}
            largest = {name: max(value, round(now[name], 1)) for name, value in largest.items()}
            time.sleep(1)
        took = time.monotonic() - begun
        reading.join()
        records = Path(folder) / "r/attempts.jsonl"
        ends = [json.loads(line)["end"] for line in records.read_text().splitlines()] if records.exists() else []
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps({
        "attempts": given.attempts, "recorded": len(ends), "answered": ends.count("answered"), "calls": server.calls,
        "seconds": round(took, 1), "cpu_seconds": round(used.ru_utime + used.ru_stime, 1), **largest,
    }))
    if run.returncode or len(ends) < given.attempts:
        sys.exit("\n".join(said[-5:]))


main()
