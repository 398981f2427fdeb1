"""The part of WebSocket (RFC 6455) that a client of ``autoexperiment serve`` needs. Uses only the standard library."""

from __future__ import annotations

import base64
import hashlib
import os
import socket
import ssl
import struct
from urllib.parse import urlsplit

from ._errors import MachineError

__all__ = ["WebSocket"]

_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10


class WebSocket:
    """A connection that sends and receives texts. ``timeout`` is the maximum time to wait for the server, in seconds."""

    def __init__(self, url: str, path: str, token: str | None, timeout: float) -> None:
        self._socket, host, prefix = _connect(url, timeout)
        self._unread = b""
        try:
            self._shake_hands(url, prefix + path, token, host)
        except OSError as error:
            self.abort()
            raise MachineError(f"the server at `{url}` did not accept the connection: {error}", None, code=5) from error
        except BaseException:
            self.abort()
            raise

    def _shake_hands(self, url: str, path: str, token: str | None, host: str) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [
            f"GET {path} HTTP/1.1", f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13",
        ]
        if token is not None:
            lines.append(f"Authorization: Bearer {token}")
        self._socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        head = self._head()
        expected = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest())
        if b" 101 " not in head.split(b"\r\n", 1)[0] + b" " or expected not in head:
            first = head.split(b"\r\n", 1)[0].decode(errors="replace")
            raise MachineError(f"the server at `{url}` refused the connection: {first}", None, code=5)

    def send(self, text: str) -> None:
        """Sends a text."""
        self._frame(_TEXT, text.encode())

    def receive(self) -> str:
        """Waits for the next text and returns it."""
        parts: list[bytes] = []
        while True:
            first, second = self._exactly(2)
            length = second & 127
            if length == 126:
                (length,) = struct.unpack("!H", self._exactly(2))
            elif length == 127:
                (length,) = struct.unpack("!Q", self._exactly(8))
            payload = self._exactly(length)
            kind = first & 15
            if kind == _PING:
                self._frame(_PONG, payload)
            elif kind == _CLOSE:
                reason = payload[2:].decode(errors="replace") or "it closed the connection"
                raise MachineError(f"the server ended the session: {reason}", None, code=5)
            elif kind in (0, _TEXT):
                parts.append(payload)
                if first & 128:
                    return b"".join(parts).decode()

    def close(self) -> None:
        """Closes the connection."""
        try:
            self._frame(_CLOSE, struct.pack("!H", 1000))
        except OSError:
            pass
        self._socket.close()

    def abort(self) -> None:
        """Closes the connection without a close message, because an earlier message may have been sent only in part."""
        self._socket.close()

    def _frame(self, kind: int, payload: bytes) -> None:
        mask = os.urandom(4)
        length = len(payload)
        if length < 126:
            head = struct.pack("!BB", 128 | kind, 128 | length)
        elif length < 1 << 16:
            head = struct.pack("!BBH", 128 | kind, 128 | 126, length)
        else:
            head = struct.pack("!BBQ", 128 | kind, 128 | 127, length)
        # Apply the mask to the payload as one large integer, which is a hundred times faster than byte by byte.
        whole = int.from_bytes(payload, "big") ^ int.from_bytes((mask * (length // 4 + 1))[:length], "big")
        self._socket.sendall(head + mask + whole.to_bytes(length, "big"))

    def _head(self) -> bytes:
        while b"\r\n\r\n" not in self._unread:
            piece = self._socket.recv(1 << 16)
            if not piece or len(self._unread) > 1 << 16:
                break
            self._unread += piece
        head, _, self._unread = self._unread.partition(b"\r\n\r\n")
        return head

    def _exactly(self, count: int) -> bytes:
        parts = [self._unread[:count]]
        self._unread = self._unread[count:]
        missing = count - len(parts[0])
        while missing:
            piece = self._socket.recv(min(missing, 1 << 20))
            if not piece:
                raise MachineError("the server closed the connection", None, code=5)
            parts.append(piece)
            missing -= len(piece)
        return b"".join(parts)


# For each URL scheme: whether connections are encrypted, and the default port.
_SCHEMES = {"http": (False, 80), "ws": (False, 80), "https": (True, 443), "wss": (True, 443)}


def _connect(url: str, timeout: float) -> tuple[socket.socket, str, str]:
    """Connects to ``http://host:port/prefix`` (or with ``https``, ``ws`` or ``wss``) or to ``unix:PATH``.

    Also returns the host's name for the request and the prefix of its path.
    """
    try:
        if url.startswith("unix:"):
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.settimeout(timeout)
            try:
                connection.connect(url.removeprefix("unix:"))
            except OSError:
                connection.close()
                raise
            return connection, "localhost", ""
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            (is_encrypted, default), port = _SCHEMES[parts.scheme], parts.port
            name = parts.hostname or ""
        except (KeyError, ValueError):
            name = ""
        if not name:
            raise MachineError(f"`{url}` is no address of `autoexperiment serve`", "give one like `http://127.0.0.1:8000`", code=2)
        connection = socket.create_connection((name, port or default), timeout)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if is_encrypted:
            try:
                connection = ssl.create_default_context().wrap_socket(connection, server_hostname=name)
            except BaseException:
                connection.close()
                raise
        return connection, parts.netloc, parts.path.rstrip("/")
    except ssl.SSLError as error:
        raise MachineError(f"no secure connection to `{url}`: {error}", None, code=5) from error
    except OSError as error:
        what = f"no server answers at `{url}`: {error}"
        raise MachineError(what, "start one with `autoexperiment serve`", code=5) from error
