"""Memory stays within cache.memory + 64 MiB while huge objects stream to slow clients."""

import os
import shutil
import subprocess
import threading
import time
import unittest

from clients import RawConnection, metric
from processes import program
from scenario import Scenario

BOUND_KIB = (32 + 64) << 10
SECONDS = 6
SLOW_BYTES_PER_SECOND = 300_000
GIB = 1 << 30
CURL_TIMED_OUT = 28


class Reader(threading.Thread):
    """Reads one response for a while, at a pace, and says how much it got."""

    def __init__(self, port, target, bytes_per_second, until):
        super().__init__()
        self.port, self.target, self.pace, self.until = port, target, bytes_per_second, until
        self.bytes = 0
        self.status = None
        self.fault = None

    def run(self):
        try:
            with RawConnection(self.port, receive_bytes=64 << 10, seconds=20) as connection:
                connection.send(f"GET {self.target} HTTP/1.1\r\nHost: big.test\r\n"
                                "Connection: close\r\n\r\n".encode())
                self.status, _ = connection.read_head()
                began = time.monotonic()
                while (now := time.monotonic()) < self.until:
                    if self.pace and self.bytes > self.pace * (now - began):
                        time.sleep(0.02)  # the pace itself
                        continue
                    piece = connection.read_some(16 << 10 if self.pace else 1 << 20)
                    if not piece:
                        break
                    if piece.count(0) != len(piece):
                        self.fault = "a byte that is not the file's"
                    self.bytes += len(piece)
        except OSError as error:
            self.fault = repr(error)


class Memory(Scenario):
    def setUp(self):
        self.origin = self.nginx("""
            location / { add_header Cache-Control "max-age=3600"; }
            location /paced/ { limit_rate 24m; add_header Cache-Control "max-age=3600"; }
        """)
        self.make_sparse("huge", GIB)

    def make_sparse(self, name, size_bytes):
        self.origin.put(name, b"")
        os.truncate(os.path.join(self.origin.www, name), size_bytes)

    def stream(self, proxy, targets, what):
        """Each target to a slow and to a fast reader."""
        until = time.monotonic() + SECONDS
        readers = [Reader(proxy.port, target, pace, until)
                   for target in targets for pace in (SLOW_BYTES_PER_SECOND, 0)]
        for reader in readers:
            reader.start()
        peak = 0
        while any(reader.is_alive() for reader in readers):
            peak = max(peak, proxy.memory_kib("VmRSS"))
            time.sleep(0.05)  # the sampling rate
        for reader in readers:
            reader.join()
        high = proxy.memory_kib("VmHWM")
        slow = [reader.bytes for reader in readers if reader.pace]
        fast = [reader.bytes for reader in readers if not reader.pace]
        print(f"{what}: {len(slow)} slow readers took {sum(slow) >> 20} MiB, as many fast ones "
              f"{sum(fast) >> 20} MiB; "
              f"RSS at most {peak >> 10} MiB, VmHWM {high >> 10} MiB, bound {BOUND_KIB >> 10} MiB; "
              f"written {metric(proxy, 'secondsight_written_bytes_total') / 2**20:.0f} MiB")
        for reader in readers:
            self.assertEqual((reader.status, reader.fault), (200, None), reader.target)
            self.assertGreater(reader.bytes, 0)
        self.assertLessEqual(high, BOUND_KIB)
        return slow, fast

    def test_first_sightings_pass_through(self):
        proxy = self.proxy(self.origin.url, cache={"disk": 0})
        for what in ("first sightings, no disk", "repeats, no disk"):
            slow, fast = self.stream(proxy, [f"/huge?first={i}" for i in range(4)], what)
            self.assertGreater(min(fast), 2 * max(slow))  # nobody waits for the slow ones

    def test_repeats_are_written_while_they_stream(self):
        free = shutil.disk_usage(self.dir).free
        if free < 8 * GIB:
            print(f"only {free >> 20} MiB free: objects of 256 MiB")
        self.make_sparse("paced/huge", GIB if free >= 8 * GIB else GIB // 4)
        disk = "4GiB" if free >= 8 * GIB else "1GiB"
        proxy = self.proxy(self.origin.url, cache={"disk": disk}, admission={"policy": "always"})
        targets = [f"/paced/huge?stored={i}" for i in range(4)]
        for what in ("filling", "filling, or being read behind it"):
            slow, fast = self.stream(proxy, targets, what)
            self.assertGreater(min(fast), 2 * max(slow))
        self.assertGreater(metric(proxy, "secondsight_written_bytes_total"), 64 << 20)

    def test_many_middling_objects_fit_too(self):
        sizes = (100_000, 1_000_000, 3_000_000, 20_000_000)
        for size in sizes:
            self.make_sparse(f"of{size}", size)
        proxy = self.proxy(self.origin.url, cache={"disk": "2GiB"})
        targets = [f"/of{size}?{i}" for size in sizes for i in range(12)]
        for turn in range(3):
            self.stream(proxy, targets, f"{len(targets)} middling objects, turn {turn}")

    def test_uploads_to_an_origin_that_does_not_read(self):
        origin = self.scripted_origin(lambda target: None)
        proxy = self.proxy(origin.url)
        with open(self.path("body"), "wb") as out:
            out.truncate(300 << 20)
        uploads = [
            subprocess.Popen([program("curl"), "--silent", "--max-time", "4", "--upload-file",
                              self.path("body"), proxy.url(f"/upload{i}")])
            for i in range(8)]
        for upload in uploads:
            self.assertEqual(upload.wait(20), CURL_TIMED_OUT)
        high = proxy.memory_kib("VmHWM")
        print(f"8 uploads of 300 MiB: VmHWM {high >> 10} MiB")
        self.assertLessEqual(high, BOUND_KIB)


if __name__ == "__main__":
    unittest.main(verbosity=2)
