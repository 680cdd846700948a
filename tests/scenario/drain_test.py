"""SIGTERM: what is under way is finished, what is idle is closed, nothing new begins."""

import hashlib
import os
import signal
import time
import unittest

from clients import Client, RawConnection, get
from processes import eventually
from scenario import Scenario

SMALL_RECEIVE_BYTES = 64 << 10  # so that a large body cannot hide in the sockets' buffers


class Drain(Scenario):
    def setUp(self):
        origin = self.nginx('location / { add_header Cache-Control "max-age=3600"; }')
        self.body = os.urandom(1 << 20) * 48
        origin.put("/large", self.body)
        origin.put("/small", b"small")
        self.running = self.proxy(origin.url, proxy={"drain_timeout": "60s"})

    def begin_download(self):
        download = RawConnection(self.running.port, receive_bytes=SMALL_RECEIVE_BYTES, seconds=30)
        self.addCleanup(download.close)
        download.send(b"GET /large HTTP/1.1\r\nHost: drain.test\r\n\r\n")
        status, _ = download.read_head()
        self.assertEqual(status, 200)
        return download

    def health(self):
        answer = get(self.running.admin_port, "/healthz")
        return answer.status, answer.body

    def refuses_connections(self):
        try:
            RawConnection(self.running.port).close()
        except OSError:
            return True
        return False

    def test_a_download_under_way_is_finished(self):
        download = self.begin_download()
        idle = RawConnection(self.running.port)
        self.addCleanup(idle.close)
        idle.send(b"GET /small HTTP/1.1\r\nHost: drain.test\r\n\r\n")
        idle.read_head()
        self.assertEqual(self.health(), (200, b"ok\n"))

        self.running.send(signal.SIGTERM)
        eventually("/healthz says so", lambda: self.health() == (503, b"draining\n"))
        self.assertEqual(idle.read_to_end(), b"small")  # closed, nothing more
        eventually("no new connections", self.refuses_connections)  # each worker closes its own
        self.assertIsNone(self.running.child.poll())

        received = len(download.received)
        digest = hashlib.sha256(download.received)
        while received < len(self.body):
            piece = download.read_some()
            self.assertTrue(piece, f"cut after {received} bytes")
            received += len(piece)
            digest.update(piece)
        self.assertEqual(digest.digest(), hashlib.sha256(self.body).digest())
        self.assertEqual(self.running.wait(), 0)

    def test_a_second_signal_ends_at_once(self):
        self.begin_download()
        self.running.send(signal.SIGTERM)
        eventually("/healthz says so", lambda: self.health() == (503, b"draining\n"))
        began = time.monotonic()
        self.running.send(signal.SIGTERM)
        self.assertEqual(self.running.wait(5), 0)
        print(f"ended {1000 * (time.monotonic() - began):.0f} ms after the second signal")

    def test_without_work_the_end_is_quick(self):
        with Client(self.running.port) as client:
            self.assertEqual(client.get("/small").status, 200)
            self.running.send(signal.SIGINT)
            self.assertEqual(self.running.wait(5), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
