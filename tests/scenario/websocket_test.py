"""A WebSocket through the proxy: frames both ways, either side's end, SIGTERM, an origin behind TLS."""

import base64
import hashlib
import os
import signal
import socket
import ssl
import struct
import subprocess
import threading
import unittest

from clients import RawConnection, get, metric
from processes import Proxy, eventually, program
from scenario import Scenario

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455 1.3
TEXT, CLOSE, PING, PONG = 1, 8, 9, 10


def accept_key(key):
    return base64.b64encode(hashlib.sha1(key + GUID).digest())


def frame(opcode, payload, mask=None):
    """One final frame; clients mask theirs. RFC 6455 5.2."""
    size = len(payload)
    masked = 0x80 if mask else 0
    if size < 126:
        head = struct.pack("!BB", 0x80 | opcode, masked | size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", 0x80 | opcode, masked | 126, size)
    else:
        head = struct.pack("!BBQ", 0x80 | opcode, masked | 127, size)
    if not mask:
        return head + payload
    return head + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))


class Peer:
    """One end of a connection: reads exactly, and takes frames apart."""

    def __init__(self, connection):
        self.socket = connection
        self.unread = b""

    def read(self, count):
        while len(self.unread) < count:
            piece = self.socket.recv(65536)
            if not piece:
                raise EOFError
            self.unread += piece
        data, self.unread = self.unread[:count], self.unread[count:]
        return data

    def read_head(self):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.read(1)
        return head

    def read_frame(self):
        """(opcode, payload, whether it was masked)"""
        first, second = self.read(2)
        size = second & 0x7f
        if size == 126:
            size = struct.unpack("!H", self.read(2))[0]
        elif size == 127:
            size = struct.unpack("!Q", self.read(8))[0]
        mask = self.read(4) if second & 0x80 else None
        payload = self.read(size)
        if mask:
            payload = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
        return first & 0x0f, payload, mask is not None


class EchoServer:
    """A WebSocket server: greets, echoes text, answers pings and the closing handshake."""

    def __init__(self, tls=None):
        self.tls = tls
        self.heads = []
        self.ended = 0
        self.connections = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self):
        return self._listener.getsockname()[1]

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
            self.connections.append(connection)
            peer = Peer(connection)
            head = peer.read_head()
            self.heads.append(head.decode("latin-1"))
            fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:] if line)
            key = fields[b"Sec-WebSocket-Key"]
            connection.sendall(
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Accept: " + accept_key(key) + b"\r\n\r\n" + frame(TEXT, b"welcome"))
            while True:
                opcode, payload, masked = peer.read_frame()
                if not masked:
                    raise EOFError
                connection.sendall(frame(PONG if opcode == PING else opcode, payload))
                if opcode == CLOSE:
                    break
        except (OSError, EOFError, KeyError):
            pass
        connection.close()
        self.ended += 1

    def break_all(self):
        """What the end of its process would do."""
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # ended before

    def close(self):
        self._listener.close()


class WebSocket(Scenario):
    def serve(self, **options):
        server = EchoServer(**options)
        self.addCleanup(server.close)
        return server

    def connect(self, port):
        connection = RawConnection(port)
        self.addCleanup(connection.close)
        key = base64.b64encode(os.urandom(16))
        connection.send(b"GET /chat HTTP/1.1\r\nHost: chat.test\r\nUpgrade: websocket\r\n"
                        b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                        b"Sec-WebSocket-Key: " + key + b"\r\n\r\n")
        peer = Peer(connection.socket)
        head = peer.read_head().decode("latin-1")
        self.assertTrue(head.startswith("HTTP/1.1 101 "), head)
        self.assertIn(f"\r\nSec-WebSocket-Accept: {accept_key(key).decode()}\r\n", head)
        self.assertEqual(peer.read_frame(), (TEXT, b"welcome", False))
        return peer

    def check_echo(self, peer):
        for payload in (b"", b"hello", os.urandom(1000), os.urandom(200_000)):
            peer.socket.sendall(frame(TEXT, payload, mask=os.urandom(4)))
            self.assertEqual(peer.read_frame(), (TEXT, payload, False))
        peer.socket.sendall(frame(PING, b"there?", mask=b"abcd"))
        self.assertEqual(peer.read_frame(), (PONG, b"there?", False))

    def close_in_order(self, peer):
        peer.socket.sendall(frame(CLOSE, b"\x03\xe8", mask=b"abcd"))
        self.assertEqual(peer.read_frame(), (CLOSE, b"\x03\xe8", False))
        with self.assertRaises(EOFError):
            peer.read(1)

    def tunnels(self, proxy):
        return metric(proxy, "secondsight_tunnels_total"), metric(proxy, "secondsight_tunnels_closed_total")

    def test_frames_both_ways_and_the_end_of_either_side(self):
        server = self.serve()
        proxy = self.proxy(f"http://127.0.0.1:{server.port}")
        peers = [self.connect(proxy.port) for _ in range(3)]
        for peer in peers:
            self.check_echo(peer)
        self.assertEqual(self.tunnels(proxy), (3, 0))

        self.close_in_order(peers[0])
        eventually("the server's end", lambda: server.ended == 1)
        peers[0].socket.close()

        peers[1].socket.close()  # a client that dies
        eventually("the server sees it", lambda: server.ended == 2)

        server.break_all()  # a server that dies
        with self.assertRaises((EOFError, ConnectionResetError)):
            peers[2].read(1)
        peers[2].socket.close()
        eventually("no tunnel is left", lambda: self.tunnels(proxy) == (3, 3))
        self.assertEqual(get(proxy.admin_port, "/healthz").status, 200)

    def test_a_silent_one_ends_after_the_idle_timeout(self):
        server = self.serve()
        proxy = self.proxy(f"http://127.0.0.1:{server.port}", proxy={"idle_timeout": "1s"})
        peer = self.connect(proxy.port)
        with self.assertRaises((EOFError, ConnectionResetError)):
            peer.read(1)
        eventually("the server sees it", lambda: server.ended == 1)

    def test_a_drain_lets_it_live_for_its_time(self):
        server = self.serve()
        proxy = self.proxy(f"http://127.0.0.1:{server.port}", proxy={"drain_timeout": "2s"})
        peer = self.connect(proxy.port)
        proxy.send(signal.SIGTERM)
        eventually("/healthz says so", lambda: get(proxy.admin_port, "/healthz").status == 503)
        self.check_echo(peer)
        with self.assertRaises((EOFError, ConnectionResetError)):
            peer.read(1)
        self.assertEqual(proxy.wait(), 0)
        eventually("the server sees it", lambda: server.ended == 1)

    def certificate(self, name):
        """(certificate, key) of an authority of its own, for that host."""
        paths = self.path(f"{name}.pem"), self.path(f"{name}.key")
        subprocess.run([program("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}",
                        "-out", paths[0], "-keyout", paths[1]], check=True, capture_output=True)
        return paths

    def proxy_that_trusts(self, authority, server):
        self.file("secondsight.toml", self.settings(f"https://localhost:{server.port}"))
        log = self.path("secondsight.log")
        proxy = Proxy(self.path("secondsight.toml"), log, env={**os.environ, "SSL_CERT_FILE": authority})
        self.addCleanup(proxy.kill)
        return proxy

    def test_an_origin_behind_tls_is_verified(self):
        certificate, key = self.certificate("localhost")
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate, key)
        server = self.serve(tls=tls)
        proxy = self.proxy_that_trusts(certificate, server)
        peer = self.connect(proxy.port)
        self.check_echo(peer)
        self.close_in_order(peer)

        other, other_key = self.certificate("elsewhere.test")
        for trusted, used, used_key in ((other, certificate, key),  # an unknown authority
                                        (other, other, other_key)):  # a known one, another's name
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(used, used_key)
            server = self.serve(tls=tls)
            proxy.kill()
            proxy = self.proxy_that_trusts(trusted, server)
            with RawConnection(proxy.port) as connection:
                connection.send(b"GET /chat HTTP/1.1\r\nHost: chat.test\r\nUpgrade: websocket\r\n"
                                b"Connection: Upgrade\r\nSec-WebSocket-Key: x\r\n\r\n")
                self.assertEqual(connection.read_head()[0], 502)
            self.assertEqual(server.heads, [], "nothing was said to it")


if __name__ == "__main__":
    unittest.main(verbosity=2)
