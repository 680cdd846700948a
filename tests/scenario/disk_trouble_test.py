"""No trouble with the disk costs a client its response, and none needs a restart to end."""

import os
import random
import resource
import shutil
import signal
import subprocess
import threading
import unittest

from clients import Client, metric
from processes import Proxy, eventually
from scenario import Scenario

OBJECT_BYTES = 50_000
SEED = int(os.environ.get("SECONDSIGHT_SEED", random.SystemRandom().randrange(1 << 32)))

# The header of a segment of format version 1000: docs/on-disk-format.md.
NEWER_SEGMENT = bytes.fromhex(
    "3253494748545347e8030000010000000000000000000000"
    "001000000000000043f02a3274c804ab")


def body_of(target):
    return (target.encode() * (OBJECT_BYTES // len(target) + 1))[:OBJECT_BYTES]


def cacheable(target):
    body = body_of(target)
    return (f"HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Length: {len(body)}\r\n"
            "Connection: close\r\n\r\n").encode() + body


class Trouble(Scenario):
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
        self.addCleanup(subprocess.run, ["umount", "--lazy", cache], capture_output=True, check=False)

    def segments(self):
        names = [name for name in os.listdir(self.path("cache")) if name.endswith(".segment")]
        self.assertTrue(names)
        return [self.path("cache", name) for name in names]


class DiskTrouble(Trouble):
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


class DiskComesAndGoes(Trouble):
    """Each kind of trouble: every answer is right, it is said once and counted, and it ends."""

    def start(self, **cache):
        settings = {"disk": "16MiB", "memory": "0", **cache}
        return self.proxy(self.origin.url, admission={"policy": "always"}, cache=settings)

    def errors(self, proxy, kind):
        return metric(proxy, "secondsight_disk_errors_total", kind=kind)

    def fill(self, proxy, *targets):
        """Asked for until each is served from disk."""
        for target in targets:
            eventually(f"{target} is on disk",
                       lambda t=target: "detail=disk" in self.ask_all(proxy, [t])[0].cache)

    def assert_trouble(self, proxy, kind, targets):
        """It is noticed, counted and said, and clients do not notice."""
        eventually(f"{kind} is counted",
                   lambda: self.ask_all(proxy, targets) and self.errors(proxy, kind) > 2)
        self.assertEqual(metric(proxy, "secondsight_disk_up"), 0)
        self.assertEqual(proxy.log().count(f"kind={kind}"), 1, proxy.log())

    def assert_recovery(self, proxy, targets):
        eventually("the disk is up",
                   lambda: self.ask_all(proxy, targets) and metric(proxy, "secondsight_disk_up") == 1)
        self.fill(proxy, *targets)
        self.assertEqual(proxy.log().count("the disk cache works again"), 1, proxy.log())
        self.assertIsNone(proxy.child.poll())

    def test_another_process_has_the_directory_and_ends(self):
        first = self.start()
        self.fill(first, "/first")
        log = self.path("second.log")
        second = Proxy(self.path("secondsight.toml"), log)
        self.addCleanup(second.kill)
        self.assert_trouble(second, "busy", ["/first", "/second"])
        self.assertIn("another process uses it", second.log())
        first.send(signal.SIGTERM)
        self.assertEqual(first.wait(), 0)
        eventually("the directory is taken over", lambda: metric(second, "secondsight_disk_up") == 1)
        answer = self.ask_all(second, ["/first"])[0]  # what the first had stored
        self.assertIn("hit", answer.cache)
        self.assertIn("detail=disk", answer.cache)
        self.assert_recovery(second, ["/second"])

    def test_the_directory_is_deleted(self):
        proxy = self.start()
        self.fill(proxy, "/a", "/b")
        for again in range(3):
            shutil.rmtree(self.path("cache"))
            eventually("it is made again", lambda: os.path.exists(self.path("cache", "seed")))
            self.fill(proxy, "/a", f"/{again}")
            self.assertLessEqual(metric(proxy, "secondsight_disk_bytes"), self.disk_usage())
        proxy.send(signal.SIGTERM)
        self.assertEqual(proxy.wait(), 0)
        proxy = self.proxy_again()
        self.assertIn("detail=disk", self.ask_all(proxy, ["/a"])[0].cache)

    def test_the_directory_is_emptied(self):
        proxy = self.start()
        self.fill(proxy, "/a")
        for name in os.listdir(self.path("cache")):
            os.unlink(self.path("cache", name))
        eventually("it is locked again", lambda: os.path.exists(self.path("cache", "seed")))
        self.fill(proxy, "/a", "/b")
        self.assertTrue(self.segments())

    def test_a_file_stands_in_its_place(self):
        proxy = self.start()
        self.fill(proxy, "/a")
        shutil.rmtree(self.path("cache"))
        self.file("cache", "a file")
        self.assert_trouble(proxy, "gone", ["/a", "/b"])
        os.unlink(self.path("cache"))
        self.assert_recovery(proxy, ["/a", "/b"])

    def test_a_directory_that_cannot_be_made_at_start(self):
        self.file("no_folder", "a file")
        proxy = self.start(directory=self.path("no_folder"))
        self.assertIn('disk="not usable"', proxy.log())
        self.assert_trouble(proxy, "gone", ["/a"])
        os.unlink(self.path("no_folder"))
        self.assert_recovery(proxy, ["/a"])

    def test_a_newer_version_wrote_it(self):
        segment = self.path("cache", "00000001.segment")
        with open(segment, "wb") as out:
            out.write(NEWER_SEGMENT)
        size = os.path.getsize(segment)
        proxy = self.start()
        self.assert_trouble(proxy, "newer-version", ["/a"])
        self.assertEqual(os.path.getsize(segment), size)
        os.unlink(segment)
        self.assert_recovery(proxy, ["/a"])

    def test_a_read_only_disk_is_read_on(self):
        self.small_disk()
        proxy = self.start(disk="4MiB")
        self.fill(proxy, "/a")
        remount = lambda how: subprocess.run(["mount", "-o", f"remount,{how}", self.path("cache")],
                                             capture_output=True, check=False).returncode
        # A file that is open for writing forbids it; the next process opens them for reading.
        proxy.send(signal.SIGTERM)
        self.assertEqual(proxy.wait(), 0)
        if remount("ro") != 0:
            self.skipTest("cannot mount it read-only")
        proxy = self.proxy_again()
        self.assertIn("detail=disk", self.ask_all(proxy, ["/a"])[0].cache)
        fresh = iter(range(10_000))
        self.ask_all(proxy, ["/b"])
        eventually("it is counted", lambda: self.ask_all(proxy, [f"/{next(fresh)}"])
                   and self.errors(proxy, "read-only") > 2)
        self.assertIn("detail=disk", self.ask_all(proxy, ["/a"])[0].cache)
        self.assertEqual(proxy.log().count("kind=read-only"), 1, proxy.log())
        self.assertEqual(remount("rw"), 0)
        self.assert_recovery(proxy, ["/a", "/b"])

    def test_a_mount_comes_and_goes(self):
        proxy = self.start(disk="4MiB")
        self.fill(proxy, "/a", "/b")
        self.small_disk()  # over the directory
        # Until it starts over, what was there before may still answer.
        written = lambda: [n for n in os.listdir(self.path("cache")) if n.endswith(".segment")]
        eventually("the mount is used", lambda: self.ask_all(proxy, ["/a"]) and written())
        subprocess.run(["umount", "--lazy", self.path("cache")], check=True)
        old = set(self.segments())
        eventually("what was away is not used",
                   lambda: not old & {self.path("cache", n) for n in os.listdir(self.path("cache"))})
        self.fill(proxy, "/a", "/b")

    def test_a_limit_of_the_file_size(self):
        proxy = self.start()
        self.fill(proxy, "/a")
        resource.prlimit(proxy.pid, resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
        fresh = iter(range(10_000))
        eventually("it is counted",
                   lambda: self.ask_all(proxy, [f"/{next(fresh)}" for _ in range(20)])
                   and self.errors(proxy, "no-space") > 2)
        self.assertEqual(proxy.log().count("kind=no-space"), 1, proxy.log())
        resource.prlimit(proxy.pid, resource.RLIMIT_FSIZE,
                         (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        self.assert_recovery(proxy, ["/a", "/b"])

    def disk_usage(self):
        """What `du` says: of all files in the cache's directory, and of that itself."""
        total = os.stat(self.path("cache")).st_blocks * 512
        for entry in os.scandir(self.path("cache")):
            try:
                total += entry.stat().st_blocks * 512
            except FileNotFoundError:  # reclaimed meanwhile
                pass
        return total

    def test_a_flood_never_takes_more_than_is_allowed(self):
        disk = 4 << 20
        proxy = self.start(disk="4MiB")
        threads = [threading.Thread(target=self.ask_all,
                                    args=(proxy, [f"/flood/{n}/{i}" for i in range(150)]))
                   for n in range(4)]
        for thread in threads:
            thread.start()
        peak, samples = 0, 0
        while any(thread.is_alive() for thread in threads):
            peak = max(peak, self.disk_usage())
            samples += 1
        self.assertLessEqual(peak, disk)
        self.assertGreater(metric(proxy, "secondsight_objects_written_total") * OBJECT_BYTES, disk)
        print(f"peak {peak} of {disk} bytes in {samples} samples, "
              f"{metric(proxy, 'secondsight_objects_written_total'):.0f} objects written")


if __name__ == "__main__":
    unittest.main(verbosity=2)
