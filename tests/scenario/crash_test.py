"""kill -9 at random moments under load, then a start on the same folder.

SECONDSIGHT_SEED=N repeats a run's random choices.
"""

import http.client
import os
import random
import threading
import time
import unittest

from clients import Client, metric
from processes import Process, built, eventually
from scenario import Scenario

ROUNDS = 10
SEED = int(os.environ.get("SECONDSIGHT_SEED", random.SystemRandom().randrange(1 << 32)))


class Catalogue:
    """Objects of the load origin, with the sums of their bytes as the origin itself gives them."""

    def __init__(self, origin, rng):
        sizes = [int(2 ** rng.uniform(0, 18)) for _ in range(250)]
        sizes += [rng.randrange(2 << 20, 6 << 20) for _ in range(8)]  # written in parts
        self.targets = [f"/o/object{i}/{size}" for i, size in enumerate(sizes)]
        self.sums = {}
        with Client(origin.port) as client:
            for target in self.targets:
                self.sums[target] = client.get(target).sha256

    def is_right(self, target, response):
        return response.status == 200 and response.sha256 == self.sums[target]


class Load:
    """Threads that ask for random objects until the proxy is killed, and check every byte."""

    def __init__(self, proxy, catalogue, seed):
        self.wrong = []
        self.answers = 0
        self._is_over = False
        self._threads = [
            threading.Thread(target=self._run, args=(proxy.port, catalogue, random.Random(seed + i)))
            for i in range(4)]
        for thread in self._threads:
            thread.start()

    def _run(self, port, catalogue, rng):
        target = None
        try:
            with Client(port) as client:
                while True:
                    target = catalogue.targets[int(len(catalogue.targets) * rng.random() ** 2)]
                    response = client.get(target)
                    if not catalogue.is_right(target, response):
                        self.wrong.append((target, response.status, len(response.body)))
                    self.answers += 1
        except (OSError, http.client.HTTPException) as error:
            if not self._is_over:
                self.wrong.append((target, repr(error)))

    def end_by_killing(self, proxy):
        self._is_over = True
        proxy.kill()
        for thread in self._threads:
            thread.join()


class Killed(Scenario):
    def test_nothing_stored_is_lost_and_no_byte_is_wrong(self):
        print(f"seed {SEED}")
        rng = random.Random(SEED)
        origin = self.load_origin()
        catalogue = Catalogue(origin, rng)
        # A small memory tier and queue, so that most hits are the disk's.
        settings = {"cache": {"memory": "2MiB", "disk": "256MiB", "write_queue": "16MiB"}}
        self.file("secondsight.toml", self.settings(origin.url, **settings))
        stored = set()
        slowest = 0.0
        for turn in range(ROUNDS):
            started = time.monotonic()
            proxy = self.proxy_again()
            hits = 0
            with Client(proxy.port) as client:
                for target in sorted(stored) or catalogue.targets[:1]:
                    answer = client.get(target)
                    if not hits:
                        slowest = max(slowest, time.monotonic() - started)
                    hits += 1
                    self.assertTrue(catalogue.is_right(target, answer), f"round {turn}: {target}")
                    self.assertTrue(answer.is_hit or not stored,
                                    f"round {turn}: {target} was stored: {answer.cache}")
            self.assertLess(slowest, 2.0, "start to first answer")

            load = Load(proxy, catalogue, rng.randrange(1 << 32))
            wanted = rng.randrange(1, 800)
            eventually("answers under load", lambda: load.answers >= wanted, 30)
            if turn % 2 == 0:
                stored |= self.found_on_disk(proxy, catalogue, rng)
            load.end_by_killing(proxy)
            self.assertEqual(load.wrong, [], f"round {turn}")
        self.assertGreater(len(stored), 20)
        print(f"{ROUNDS} kills, {len(stored)} objects known to be stored, "
              f"slowest start to first answer {slowest * 1000:.0f} ms")

    def found_on_disk(self, proxy, catalogue, rng):
        """Objects that a look-up has just found on disk: the next start must have them."""
        found = set()
        with Client(proxy.port) as client:
            for target in rng.sample(catalogue.targets, 40):
                answer = client.get(target)
                self.assertTrue(catalogue.is_right(target, answer), target)
                if answer.cache.endswith("hit; detail=disk"):
                    found.add(target)
        return found

    def test_a_ring_that_goes_round_serves_no_wrong_byte(self):
        """The disk holds a fraction of the objects: kills meet segments being reclaimed."""
        print(f"seed {SEED}")
        rng = random.Random(SEED)
        origin = self.load_origin()
        catalogue = Catalogue(origin, rng)
        settings = {"cache": {"memory": "1MiB", "disk": "16MiB"}, "admission": {"policy": "always"}}
        self.file("secondsight.toml", self.settings(origin.url, **settings))
        hits = 0
        for turn in range(ROUNDS):
            interrupted = Process([built("secondsight"), "--config", self.path("secondsight.toml")],
                                  self.path("interrupted.log"))
            if turn % 2:  # somewhere within its start
                eventually("its first line", interrupted.log)
            interrupted.kill()
            proxy = self.proxy_again()
            load = Load(proxy, catalogue, rng.randrange(1 << 32))
            wanted = rng.randrange(1, 800)
            eventually("answers under load", lambda: load.answers >= wanted, 30)
            hits += metric(proxy, "secondsight_requests_total", outcome="hit")
            load.end_by_killing(proxy)
            self.assertEqual(load.wrong, [], f"round {turn}")
        self.assertGreater(hits, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
