"""A body whose beginning the disk's ring has given up, while its end is still on its way."""

import threading
import unittest

from clients import HOST, RawConnection, get, metric
from processes import eventually
from scenario import Scenario

LARGE = bytes(range(256)) * (6 << 12)  # 6 MiB: written in parts, as it comes
SMALL = b"s" * 100_000


def head(size_bytes):
    return (f"HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Length: {size_bytes}\r\n"
            "Connection: close\r\n\r\n").encode()


class Lapped(Scenario):
    def test_who_comes_late_gets_the_whole_body(self):
        go_on = threading.Event()
        self.addCleanup(go_on.set)
        asked = []

        def script(target):
            if target != "/large":
                return head(len(SMALL)) + SMALL
            asked.append(target)
            return hesitating() if len(asked) == 1 else head(len(LARGE)) + LARGE

        def hesitating():
            yield head(len(LARGE)) + LARGE[:5 << 20]
            go_on.wait(30)
            yield LARGE[5 << 20:]

        origin = self.scripted_origin(script)
        proxy = self.proxy(origin.url, admission={"policy": "always"},
                           cache={"disk": "16MiB", "memory": "1MiB"})
        early = RawConnection(proxy.port)
        self.addCleanup(early.close)
        early.send(f"GET /large HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
        self.assertEqual(early.read_head()[0], 200)
        while len(early.received) < 5 << 20:
            early.received += early.read_some()

        others = iter(range(100_000))

        def has_gone_round():
            for _ in range(20):
                self.assertEqual(get(proxy.port, f"/small/{next(others)}").body, SMALL)
            return metric(proxy, "secondsight_written_bytes_total") > (5 + 16 + 1) << 20

        eventually("the ring has gone round", has_gone_round, 60)

        late = get(proxy.port, "/large")
        self.assertEqual((late.status, late.body == LARGE), (200, True))
        go_on.set()
        while len(early.received) < len(LARGE):
            early.received += early.read_some()
        self.assertTrue(early.received == LARGE)
        again = get(proxy.port, "/large")
        self.assertEqual((again.status, again.body == LARGE), (200, True))


if __name__ == "__main__":
    unittest.main(verbosity=2)
