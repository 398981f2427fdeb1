"""Shows trajectories in SWE-agent's own inspector and its server, and prints what they show as JSON."""

import functools
import json
import socketserver
import sys
import threading
import urllib.parse
import urllib.request
from pathlib import Path

from inspector import server as inspector

# The inspector assumes that trajectories are in its own checkout.
inspector.__file__ = str(Path(sys.argv[1]).resolve() / "inspector" / "server.py")
handler = functools.partial(inspector.Handler, directory=sys.argv[1], gold_patches={}, test_patches={})
with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def get(path):
        address = f"http://127.0.0.1:{server.server_address[1]}/{path}"
        with urllib.request.urlopen(address, timeout=30) as answer:
            return json.load(answer)

    found = {}
    for name in get("files"):
        path = name.split("    ")[0]
        shown = get("trajectory/" + urllib.parse.quote(path, safe="/,"))
        first, *history, last = shown["history"]
        assert first == last and first["role"] == "Evaluation Report", first
        # The inspector's page escapes every entry like this.
        texts = [entry.get("content", "").replace("<", "&lt;") for entry in shown["history"]]
        found[path] = {
            "roles": [entry["role"] for entry in history],
            "patches": [entry["content"] for entry in history if entry["role"] == "model_patch"],
            "statistics": first["content"].splitlines()[1:5],
            "characters": sum(map(len, texts)),
        }
    server.shutdown()
print(json.dumps(found))
