"""secondsight verify and the scrub of the running proxy: what a device lost is found and fetched again."""

import json
import os
import signal
import subprocess
import unittest

from clients import Client, metric
from processes import built, eventually
from scenario import Scenario

OBJECTS = 200


def body_of(target):
    return (target.encode() * 2000)[:20_000]


def cacheable(target):
    body = body_of(target)
    return (f"HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Length: {len(body)}\r\n"
            "Connection: close\r\n\r\n").encode() + body


class Verify(Scenario):
    def setUp(self):
        self.origin = self.scripted_origin(cacheable)
        self.targets = [f"/object/{i}" for i in range(OBJECTS)]

    def start(self, **cache):
        return self.proxy(self.origin.url, admission={"policy": "always"},
                          cache={"disk": "64MiB", "memory": "0", **cache})

    def ask_all(self, proxy):
        """Every body must be right. {target: whether it was a hit}."""
        with Client(proxy.port) as client:
            answers = {target: client.get(target) for target in self.targets}
        for target, answer in answers.items():
            self.assertEqual((answer.status, answer.body == body_of(target)), (200, True), target)
        return {target: answer.is_hit for target, answer in answers.items()}

    def fill(self):
        proxy = self.start()
        self.ask_all(proxy)
        eventually("all written",
                   lambda: metric(proxy, "secondsight_objects_written_total") == OBJECTS)
        return proxy

    def stop(self, proxy):
        proxy.send(signal.SIGTERM)
        self.assertEqual(proxy.wait(), 0)

    def verify(self, exit_code, *arguments):
        run = subprocess.run([built("secondsight"), "verify", "--config",
                              self.path("secondsight.toml"), *arguments],
                             capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(run.returncode, exit_code, run.stdout + run.stderr)
        return run

    def contents(self):
        """Name, size and time of change of every file."""
        return {name: (os.stat(self.path("cache", name)).st_size,
                       os.stat(self.path("cache", name)).st_mtime_ns)
                for name in os.listdir(self.path("cache"))}

    def flip_in_body_of(self, target):
        """Flips one byte in the middle of that object's body. (segment file, its offset)."""
        body = body_of(target)
        for name in sorted(os.listdir(self.path("cache"))):
            if not name.endswith(".segment"):
                continue
            with open(self.path("cache", name), "r+b") as segment:
                at = segment.read().find(body)
                if at < 0:
                    continue
                at += len(body) // 2
                segment.seek(at)
                byte = segment.read(1)[0]
                segment.seek(at)
                segment.write(bytes([byte ^ 0x40]))
                return name, at
        self.fail(f"{target} is in no segment")

    def test_a_whole_cache_is_clean_and_untouched(self):
        proxy = self.fill()
        busy = self.verify(1)
        self.assertIn("another process uses it", busy.stderr)
        self.assertEqual(busy.stdout, "")
        self.stop(proxy)

        before = self.contents()
        report = json.loads(self.verify(0, "--json").stdout)
        self.assertEqual(self.contents(), before)
        self.assertTrue(report["clean"])
        self.assertEqual(report["in_use"]["records"], OBJECTS)
        self.assertEqual(report["segments"]["unsealed"], 0)
        print(self.verify(0).stdout)

    def test_a_kill_leaves_no_damage(self):
        self.fill().kill()
        self.assertIn("every record is whole", self.verify(0).stdout)

    def test_a_flipped_byte_is_named_then_scrubbed_and_fetched_again(self):
        self.stop(self.fill())
        wrong = self.targets[77]
        segment, at = self.flip_in_body_of(wrong)

        report = json.loads(self.verify(1, "--json").stdout)
        self.assertEqual(report["damaged_count"], 1)
        damaged = report["damaged"][0]
        self.assertEqual((damaged["segment"], damaged["kind"], damaged["reason"], damaged["in_use"]),
                         (int(segment[:8], 16), "object", "body damaged", True))
        self.assertLessEqual(damaged["offset"], at)
        self.assertLess(at, damaged["offset"] + damaged["length"])
        self.assertIn(f"{segment} offset {damaged['offset']}, object", self.verify(1).stdout)

        proxy = self.start(scrub="64MiB")
        eventually("a round", lambda: metric(proxy, "secondsight_scrub_rounds_total") > 0)
        self.assertEqual(metric(proxy, "secondsight_scrub_damaged_total"), 1)
        self.assertEqual(metric(proxy, "secondsight_index_objects"), OBJECTS - 1)
        place = f"segment={damaged['segment']} offset={damaged['offset']} "
        self.assertIn('"stored record damaged" ' + place, proxy.log())
        hits = self.ask_all(proxy)
        self.assertEqual([target for target, is_hit in hits.items() if not is_hit], [wrong])
        self.assertEqual(metric(proxy, "secondsight_unreadable_objects_total"), 0)
        eventually("written again",
                   lambda: metric(proxy, "secondsight_objects_written_total") == 1)
        self.assertTrue(all(self.ask_all(proxy).values()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
