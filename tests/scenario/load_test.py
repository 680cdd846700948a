"""wrk and the demo: many connections at once, no error."""

import json
import os
import re
import subprocess
import unittest

from clients import HOST, curl
from processes import built, program
from scenario import Scenario

MANY_URLS = """
local n = 0
request = function()
  n = n + 1
  return wrk.format("GET", "/many/" .. (n * 7919) % 400)
end
"""


class Wrk(Scenario):
    def drive(self, *arguments):
        run = subprocess.run(
            [program("wrk"), "-t2", "-c64", "-d3s", "-H", f"Host: {HOST}", *arguments],
            capture_output=True, text=True, check=True, timeout=30)
        print(run.stdout)
        self.assertNotIn("Socket errors", run.stdout)
        self.assertNotIn("Non-2xx", run.stdout)
        requests = int(re.search(r"(\d+) requests in", run.stdout).group(1))
        self.assertGreater(requests, 64)  # how many is the machine's business

    def test_one_hot_object(self):
        origin = self.nginx('location / { add_header Cache-Control "max-age=3600"; }')
        origin.put("/hot", b"h" * 1024)
        proxy = self.proxy(origin.url)
        self.drive(proxy.url("/hot"))
        self.assertTrue(curl(proxy.url("/hot")).is_hit)
        self.assertEqual(len(origin.requests()), 1)

    def test_many_objects(self):
        origin = self.nginx('location / { add_header Cache-Control "max-age=3600"; }')
        for i in range(400):
            origin.put(f"/many/{i}", bytes([i % 256]) * (100 + 311 * i))
        proxy = self.proxy(origin.url, cache={"memory": "4MiB"})  # 25 MB in all: memory and disk
        self.drive("-s", self.file("many.lua", MANY_URLS), proxy.url("/"))
        for i in (1, 399):
            answers = [curl(proxy.url(f"/many/{i}")) for _ in range(2)]
            self.assertTrue(answers[1].is_hit, answers[1].cache)
            self.assertEqual(answers[1].body, bytes([i % 256]) * (100 + 311 * i))

    def test_many_uncacheable_objects(self):
        origin = self.nginx('location / { add_header Cache-Control "no-store"; }')
        for i in range(400):
            origin.put(f"/many/{i}", bytes([i % 256]) * 1000)
        proxy = self.proxy(origin.url)
        self.drive("-s", self.file("many.lua", MANY_URLS), proxy.url("/"))
        self.assertGreater(len(origin.requests()), 64)


class Demo(Scenario):
    RUN_KEYS = {"policy", "requests", "hits", "hit_bytes", "origin_fetches", "objects_written",
                "bytes_written", "kernel_write_bytes", "errors", "corrupt_bodies", "p50_ms", "p99_ms"}

    def test_the_report_is_clean_and_has_its_keys(self):
        out = self.path("demo")
        run = subprocess.run(
            [built("secondsight-load"), "demo", "--proxy", built("secondsight"), "--out", out,
             "--requests", "5000"], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        with open(os.path.join(out, "report.json"), encoding="utf-8") as file:
            report = json.load(file)
        self.assertLessEqual({"trace", "runs", "avoided"}, set(report))
        self.assertEqual([r["policy"] for r in report["runs"]], ["always", "second-sighting"])
        for run in report["runs"]:
            self.assertLessEqual(self.RUN_KEYS, set(run))
            self.assertEqual((run["requests"], run["errors"], run["corrupt_bodies"]), (5000, 0, 0))
            self.assertGreater(run["hits"], 0)
        self.assertLessEqual({"objects", "bytes"}, set(report["avoided"]))
        self.assertGreater(report["avoided"]["objects"], 0.5)
        self.assertGreater(report["avoided"]["bytes"], 0.5)


if __name__ == "__main__":
    unittest.main(verbosity=2)
