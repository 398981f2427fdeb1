"""An assistant from npm that uses the MCP server, behind a model that plays its part.

    python tests/support/assistant.py FOLDER PACKAGE PROGRAM ARGUMENT... < plan.json

Installs PACKAGE, a pinned qwen-code, below FOLDER, with PROGRAM as its only MCP server, and lets it run on one prompt. The plan
is a list of calls, `[tool, arguments]`, which the model makes one after another; `"attempt": null` in the arguments is
replaced by the attempt that was started. Prints what each call returned to the model, as a JSON list of texts.
"""

import http.server
import json
import os
import subprocess
import sys
import threading

PREFIX = "mcp__autoexperiment__"


class Model(http.server.BaseHTTPRequestHandler):
    """A provider whose model makes the calls of the plan."""

    plan = []
    returned = []
    searched = False

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        texts = []
        for message in body["messages"]:
            if message["role"] == "tool":
                content = message["content"]
                texts.append(content if isinstance(content, str) else "".join(part.get("text", "") for part in content))
        call = self.next_call(texts, [tool["function"]["name"] for tool in body.get("tools", [])])
        message = {"role": "assistant", "content": None if call else "Done."}
        if call:
            function = {"name": call[0], "arguments": json.dumps(call[1])}
            message["tool_calls"] = [{"index": 0, "id": f"c{len(texts)}", "type": "function", "function": function}]
        about = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        end = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if call else "stop"}
        chunks = [
            {**about, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
            {**about, "choices": [end], "usage": usage},
        ]
        text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def next_call(self, texts, tools):
        """The call that follows these results, or `None` after the last one."""
        if not texts and "tool_search" in tools:
            # Later versions show the model only the names of tools until it asks for them.
            Model.searched = True
            names = sorted({tool for tool, _ in self.plan})
            return "tool_search", {"query": "select:" + ",".join(PREFIX + name for name in names), "max_results": 10}
        Model.returned = texts[1:] if self.searched else texts
        if len(self.returned) == len(self.plan):
            return None
        tool, arguments = self.plan[len(self.returned)]
        if "attempt" in arguments:
            begun = next(text for text in self.returned if text.startswith('{"attempt"'))
            arguments = {**arguments, "attempt": json.loads(begun)["attempt"]}
        return PREFIX + tool, arguments


def main():
    folder, package, program, *arguments = sys.argv[1:]
    Model.plan = json.load(sys.stdin)
    command = ["npm", "install", "--prefix", folder, "--no-audit", "--no-fund", "--ignore-scripts", package]
    subprocess.run(command, check=True, stdout=sys.stderr)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home = os.path.join(folder, "home")
    os.makedirs(os.path.join(home, ".qwen"))
    settings = {
        "mcpServers": {"autoexperiment": {"command": program, "args": arguments, "cwd": os.getcwd(), "trust": True}},
        "security": {"auth": {"selectedType": "openai"}},
        "telemetry": {"enabled": False},
    }
    with open(os.path.join(home, ".qwen", "settings.json"), "w") as file:
        json.dump(settings, file)
    variables = {
        **os.environ,
        "HOME": home,
        "OPENAI_API_KEY": "none",
        "OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_address[1]}/v1",
        "OPENAI_MODEL": "m",
    }
    started = [os.path.join(folder, "node_modules", ".bin", "qwen"), "--yolo", "-p", "Attempt a sample."]
    subprocess.run(started, env=variables, cwd=home, check=True, stdout=sys.stderr, timeout=300)
    print(json.dumps(Model.returned))


main()
