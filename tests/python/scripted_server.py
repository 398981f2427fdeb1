"""A server that speaks as `autoexperiment serve` does and answers as a test says, for failures that a real one hardly has."""

import base64
import contextlib
import hashlib
import json
import socket
import ssl
import struct
import threading
from typing import Any, Callable, Iterator, Optional

Message = dict[str, Any]


def observation(text: str, reward: Optional[float] = None, done: bool = False, **metadata: Any) -> Message:
    shown = {"text": text, "pending": False}
    return {"type": "observation", "data": {"observation": shown, "reward": reward, "done": done, "metadata": metadata}}


def refusal(kind: str) -> Message:
    return {"type": "error", "data": {"message": f"refused: {kind}", "code": kind}}


class ScriptedServer:
    """`answer` returns the answer to a message, or `None` to close the connection. `tls` encrypts connections."""

    def __init__(self, answer: Callable[[Message], Optional[Message]], tls: Optional[ssl.SSLContext] = None) -> None:
        self.answer = answer
        self.connections = 0
        self.requests: list[bytes] = []
        """The first lines of the requests."""
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        if self._tls is not None:
            try:
                connection = self._tls.wrap_socket(connection, server_side=True)
            except OSError:
                return
        with contextlib.suppress(OSError), connection, connection.makefile("rb") as received:
            key = b""
            self.requests.append(received.readline().strip())
            while line := received.readline().strip():
                name, _, value = line.partition(b":")
                if name.lower() == b"sec-websocket-key":
                    key = value.strip()
            digest = hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
            accepted = b"Sec-WebSocket-Accept: " + base64.b64encode(digest)
            connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\n" + accepted + b"\r\n\r\n")
            for text in _texts(received):
                answer = self.answer(json.loads(text))
                if answer is None:
                    connection.shutdown(socket.SHUT_RDWR)
                    return
                data = json.dumps(answer).encode()
                connection.sendall(struct.pack("!BBH", 0x81, 126, len(data)) + data)


def _texts(received: Any) -> Iterator[bytes]:
    """The texts that a client sends, until it closes the connection."""
    while len(head := received.read(2)) == 2 and head[0] & 15 == 1:
        length = head[1] & 127
        if length == 126:
            (length,) = struct.unpack("!H", received.read(2))
        elif length == 127:
            (length,) = struct.unpack("!Q", received.read(8))
        mask, data = received.read(4), received.read(length)
        yield bytes(byte ^ mask[place % 4] for place, byte in enumerate(data))
