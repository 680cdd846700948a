"""Clients: curl, a connection that sends given bytes, and readers that check what they get."""

import hashlib
import http.client
import os
import re
import socket
import subprocess

from processes import program


HOST = "site.test"  # whatever the proxy's port: the host is part of a cache key


class Response:
    def __init__(self, status, fields, body):
        self.status = status
        self.fields = fields  # [(name in lower case, value)]
        self.body = body

    def all(self, name):
        return [value for field, value in self.fields if field == name.lower()]

    def get(self, name):
        values = self.all(name)
        return values[0] if values else None

    @property
    def cache(self):
        """Cache-Status without what differs between runs."""
        return re.sub(r"; ttl=-?\d+", "", self.get("cache-status") or "")

    @property
    def is_hit(self):
        return self.cache.startswith("secondsight; hit")

    @property
    def sha256(self):
        return hashlib.sha256(self.body).hexdigest()


def parse_head(text):
    lines = text.split("\r\n")
    fields = [line.split(":", 1) for line in lines[1:] if ":" in line]
    return int(lines[0].split()[1]), [(name.lower(), value.strip()) for name, value in fields]


def curl(url, *options, body_path=None, exit_code=0):
    """One transfer by curl. Its body is in `body_path` instead, if that is given."""
    run = subprocess.run(
        [program("curl"), "--silent", "--show-error", "--max-time", "60", "--dump-header", "/dev/stderr",
         "--header", f"Host: {HOST}", *(["--output", body_path] if body_path else []), *options, url],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "no_proxy": "*"}, check=False)
    text = run.stderr.decode("latin-1")
    if run.returncode != exit_code:
        raise AssertionError(f"curl {url}: exit code {run.returncode}\n{text}")
    heads = [head for head in text.split("\r\n\r\n") if head.startswith("HTTP/")]
    final = [head for head in heads if not head.startswith("HTTP/1.1 100")]
    status, fields = parse_head(final[-1]) if final else (0, [])
    return Response(status, fields, b"" if "--head" in options else run.stdout)


class Client:
    """One kept-alive connection of Python's own client."""

    def __init__(self, port, seconds=20):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)

    def get(self, target, **fields):
        headers = {name.replace("_", "-"): value for name, value in fields.items()}
        self.connection.request("GET", target, headers={"Host": HOST, **headers})
        answer = self.connection.getresponse()
        body = answer.read()
        return Response(answer.status, [(n.lower(), v) for n, v in answer.getheaders()], body)

    def close(self):
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def get(port, target, **fields):
    with Client(port) as client:
        return client.get(target, **fields)


def metric(proxy, name, **labels):
    """The sum of a metric's series that carry these labels."""
    text = get(proxy.admin_port, "/metrics").body.decode()
    wanted = [f'{label}="{value}"' for label, value in labels.items()]
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
               if re.match(re.escape(name) + r"[{ ]", line) and all(w in line for w in wanted))


class RawConnection:
    """A connection for bytes as they are."""

    def __init__(self, port, receive_bytes=None, seconds=10):
        self.socket = socket.socket()
        if receive_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(seconds)
        self.socket.connect(("127.0.0.1", port))
        self.received = b""

    def send(self, data):
        self.socket.sendall(data)

    def read_some(self, bytes_max=65536):
        return self.socket.recv(bytes_max)

    def read_head(self):
        """Status and fields; body bytes that came along stay in `received`."""
        while b"\r\n\r\n" not in self.received:
            piece = self.read_some()
            if not piece:
                raise AssertionError(f"closed within a head: {self.received!r}")
            self.received += piece
        head, self.received = self.received.split(b"\r\n\r\n", 1)
        return parse_head(head.decode("latin-1"))

    def read_to_end(self):
        """All until the peer closes, whether in order or by a reset."""
        try:
            while piece := self.read_some():
                self.received += piece
        except ConnectionResetError:
            pass
        return self.received

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
