"""What was sighted before a restart is a repeat after it, however the process ended."""

import glob
import os
import signal
import stat
import subprocess
import unittest

from clients import Client, metric
from processes import eventually
from scenario import Scenario

FIRST = "detail=first-sighting"
REPEAT = "stored; detail=repeat"
COUNT = 40


class SightingsKept(Scenario):
    """Without a memory tier, so that only the filter can know."""

    def setUp(self):
        self.origin = self.load_origin()
        self.targets = [f"/o/key{i}/1000" for i in range(COUNT)]

    def start(self, **tables):
        tables.setdefault("cache", {}).update({"memory": "0", "disk": "64MiB"})
        return self.proxy(self.origin.url, **tables)

    def ask(self, proxy, targets, word):
        """Each target once; every answer has that word."""
        with Client(proxy.port) as client:
            for target in targets:
                self.assertIn(word, client.get(target).cache, target)

    def wait_written(self, proxy, marks):
        """Until that many marks are in the journal."""
        def written():
            return metric(proxy, "secondsight_written_bytes_total", cause="journal") >= marks * 8
        eventually("the marks are written", written)

    def files(self):
        return sorted(glob.glob(self.path("cache", "sightings-*")))

    def end(self, proxy):
        proxy.send(signal.SIGTERM)
        self.assertEqual(proxy.wait(), 0)

    def test_a_stop_forgets_nothing(self):
        proxy = self.start()
        self.ask(proxy, self.targets, FIRST)
        self.end(proxy)  # at once: the last marks are handed over at the end
        proxy = self.proxy_again()
        self.assertIn(f"marks={COUNT}", proxy.log())
        self.assertEqual(metric(proxy, "secondsight_sightings_restored_total"), COUNT)
        self.ask(proxy, self.targets, REPEAT)
        self.assertEqual(metric(proxy, "secondsight_written_bytes_total", cause="journal"), 0,
                         "what is known is not written again")

    def test_a_kill_forgets_at_most_what_was_not_written_yet(self):
        proxy = self.start()
        self.ask(proxy, self.targets, FIRST)
        self.wait_written(proxy, COUNT)
        proxy.kill()
        self.ask(self.proxy_again(), self.targets, REPEAT)

    def test_many_kills_add_up(self):
        proxy = self.start()
        for part in range(5):
            targets = self.targets[part * 8:part * 8 + 8]
            self.ask(proxy, targets, FIRST)
            self.wait_written(proxy, len(targets))
            proxy.kill()
            proxy = self.proxy_again()
        self.ask(proxy, self.targets, REPEAT)
        self.assertEqual(len(self.files()), 1)

    def test_other_settings_of_the_filter_forget_nothing(self):
        proxy = self.start()
        self.ask(proxy, self.targets, FIRST)
        self.end(proxy)
        proxy = self.start(admission={"expected_keys": 5_000_000, "window": "48h"})
        self.ask(proxy, self.targets, REPEAT)

    def test_damage_is_told_and_costs_only_its_batch(self):
        proxy = self.start()
        for half in (self.targets[:20], self.targets[20:]):
            self.ask(proxy, half, FIRST)
            self.wait_written(proxy, self.targets.index(half[-1]) + 1)
        self.end(proxy)
        with open(self.files()[0], "r+b") as file:
            file.seek(120)
            file.write(b"damage")
        proxy = self.proxy_again()
        self.assertIn("damaged sightings skipped", proxy.log())
        self.ask(proxy, self.targets[20:], REPEAT)

    def test_sightings_of_another_seed_are_told_and_skipped(self):
        proxy = self.start()
        self.ask(proxy, self.targets, FIRST)
        self.end(proxy)
        os.remove(self.path("cache", "seed"))
        proxy = self.proxy_again()
        self.assertIn("sightings skipped", proxy.log())
        self.ask(proxy, self.targets, FIRST)
        self.end(proxy)
        self.ask(self.proxy_again(), self.targets, REPEAT)

    def test_the_files_are_the_owners_alone_whatever_the_umask(self):
        before = os.umask(0)
        try:
            proxy = self.start()
        finally:
            os.umask(before)
        self.ask(proxy, self.targets, FIRST)
        self.end(proxy)
        for path in [*self.files(), self.path("cache", "seed")]:
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600, path)

    def test_a_full_disk_costs_no_response_and_is_told_once(self):
        cache = self.path("cache")
        os.makedirs(cache, exist_ok=True)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", cache],
                                 capture_output=True, text=True, check=False)
        if mounted.returncode != 0:
            self.skipTest(f"no tmpfs of its own to fill: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "--lazy", cache], capture_output=True, check=False)
        proxy = self.start()
        filler = self.path("cache", "filler")
        with open(filler, "wb", buffering=0) as out, self.assertRaises(OSError):
            while True:
                out.write(b"f" * 4096)
        self.ask(proxy, self.targets, FIRST)
        eventually("the trouble is told", lambda: "cannot keep sightings" in proxy.log())
        os.remove(filler)
        eventually("it is over", lambda: "sightings are kept for a restart again" in proxy.log())
        self.assertEqual(proxy.log().count("cannot keep sightings"), 1)
        self.end(proxy)
        self.ask(self.proxy_again(), self.targets, REPEAT)

    def test_a_policy_without_a_filter_keeps_none(self):
        proxy = self.start(admission={"policy": "always"})
        self.ask(proxy, self.targets, "stored; detail=always")
        self.end(proxy)
        self.assertEqual(self.files(), [])


if __name__ == "__main__":
    unittest.main()
