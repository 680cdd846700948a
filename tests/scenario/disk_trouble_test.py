"""A full disk and a vanished cache folder cost no client its response."""

import os
import random
import shutil
import signal
import subprocess
import unittest

from clients import Client, metric
from processes import eventually
from scenario import Scenario

OBJECT_BYTES = 50_000
SEED = int(os.environ.get("SECONDSIGHT_SEED", random.SystemRandom().randrange(1 << 32)))


def body_of(target):
    return (target.encode() * (OBJECT_BYTES // len(target) + 1))[:OBJECT_BYTES]


def cacheable(target):
    body = body_of(target)
    return (f"HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Length: {len(body)}\r\n"
            "Connection: close\r\n\r\n").encode() + body


class DiskTrouble(Scenario):
    def setUp(self):
        self.origin = self.scripted_origin(cacheable)
        os.makedirs(self.path("cache"))

    def ask(self, proxy, targets):
        """Every response must be right; the answers' Cache-Status."""
        with Client(proxy.port) as client:
            for target in targets:
                answer = client.get(target)
                self.assertEqual((answer.status, answer.body == body_of(target)), (200, True), target)
                yield answer

    def ask_all(self, proxy, targets):
        return list(self.ask(proxy, targets))

    def small_disk(self):
        cache = self.path("cache")
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", cache],
                                 capture_output=True, text=True, check=False)
        if mounted.returncode != 0:
            self.skipTest(f"no tmpfs of its own to fill: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "--lazy", cache], check=True)

    def start(self):
        return self.proxy(self.origin.url, admission={"policy": "always"},
                          cache={"disk": "64MiB", "memory": "1MiB"})

    def fill_up(self):
        """A file that takes all the room there is."""
        path = self.path("cache", "filler")
        with open(path, "wb", buffering=0) as out, self.assertRaises(OSError):
            while True:
                out.write(b"f" * 4096)
        return path

    def test_a_disk_smaller_than_configured_is_used_as_it_is(self):
        self.small_disk()
        proxy = self.start()
        targets = [f"/small/{i}" for i in range(400)]  # 20 MB for 8
        self.ask_all(proxy, targets)
        eventually("all written", lambda: metric(proxy, "secondsight_writer_queue_bytes") == 0)
        last = [answer.cache for answer in self.ask(proxy, targets[-40:])]
        self.assertIn("secondsight; hit; detail=disk", last)
        self.assertLessEqual(metric(proxy, "secondsight_disk_bytes"), 8 << 20)
        print(f"{metric(proxy, 'secondsight_objects_written_total'):.0f} objects written, "
              f"{metric(proxy, 'secondsight_disk_write_errors_total'):.0f} write errors, "
              f"{metric(proxy, 'secondsight_index_objects'):.0f} on a disk of 8 MiB")

    def test_a_full_disk_is_counted_and_used_again_when_there_is_room(self):
        self.small_disk()
        proxy = self.start()
        filler = self.fill_up()
        written = lambda: metric(proxy, "secondsight_objects_written_total")
        errors = lambda: metric(proxy, "secondsight_disk_write_errors_total")

        self.ask_all(proxy, [f"/full/{i}" for i in range(100)])
        eventually("write errors are counted", lambda: errors() > 0)
        self.ask_all(proxy, [f"/full/{i}" for i in range(100)])
        self.assertEqual(written(), 0)

        os.unlink(filler)
        fresh = iter(range(10_000))
        eventually("objects are written again",
                   lambda: self.ask_all(proxy, [f"/again/{next(fresh)}"]) and written() > 3)
        print(f"{errors():.0f} write errors, {written():.0f} objects written after them")

    def test_a_folder_removed_under_the_proxy(self):
        proxy = self.start()
        self.ask_all(proxy, [f"/before/{i}" for i in range(100)])
        shutil.rmtree(self.path("cache"))
        self.ask_all(proxy, [f"/before/{i}" for i in range(100)])
        self.ask_all(proxy, [f"/after/{i}" for i in range(200)])
        self.ask_all(proxy, [f"/after/{i}" for i in range(200)])
        self.assertIsNone(proxy.child.poll())

    def segments(self):
        names = [name for name in os.listdir(self.path("cache")) if name.endswith(".segment")]
        self.assertTrue(names)
        return [self.path("cache", name) for name in names]

    def flip_bits(self, rng):
        """One bit in about every 100,000 bytes: some records are hit and some are not."""
        for path in self.segments():
            with open(path, "r+b") as segment:
                size = os.path.getsize(path)
                for _ in range(size // 100_000):
                    at = rng.randrange(size)
                    segment.seek(at)
                    byte = segment.read(1)[0]
                    segment.seek(at)
                    segment.write(bytes([byte ^ 1 << rng.randrange(8)]))

    def test_flipped_bits_are_never_served(self):
        rng = random.Random(SEED)
        print(f"seed {SEED}")
        proxy = self.start()
        targets = [f"/flip/{i}" for i in range(100)]
        self.ask_all(proxy, targets)
        eventually("all written", lambda: metric(proxy, "secondsight_objects_written_total") == 100)
        self.flip_bits(rng)  # under the running proxy
        self.ask_all(proxy, targets)
        dropped = metric(proxy, "secondsight_unreadable_objects_total")
        self.assertGreater(dropped, 0)
        eventually("written again", lambda: metric(proxy, "secondsight_writer_queue_bytes") == 0)
        proxy.send(signal.SIGTERM)
        self.assertEqual(proxy.wait(), 0)

        self.flip_bits(rng)  # headers and footers, too
        proxy = self.proxy_again()
        hits = sum(answer.is_hit for answer in self.ask(proxy, targets))
        self.assertGreater(hits, 0)
        print(f"{dropped:.0f} of {len(targets)} dropped; after a restart and more flips, {hits} hits")

    def test_truncated_segments_are_never_served(self):
        proxy = self.start()
        targets = [f"/short/{i}" for i in range(100)]
        self.ask_all(proxy, targets)
        eventually("all written", lambda: metric(proxy, "secondsight_objects_written_total") == 100)
        for path in self.segments():
            os.truncate(path, os.path.getsize(path) // 2)
        self.ask_all(proxy, targets)
        proxy.kill()
        proxy = self.proxy_again()
        self.ask_all(proxy, targets)


if __name__ == "__main__":
    unittest.main(verbosity=2)
