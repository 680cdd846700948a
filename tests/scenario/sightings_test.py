"""secondsight sightings: what one proxy remembers, or a log tells, another begins with."""

import gzip
import json
import os
import shutil
import signal
import stat
import subprocess
import time
import unittest

from clients import HOST, Client, get, metric
from processes import Proxy, built, eventually
from scenario import Scenario

FIRST = "detail=first-sighting"
REPEAT = "stored; detail=repeat"
COUNT = 40
LOGGED = ('192.0.2.7 - - [{time}] "GET {target} HTTP/1.1" 200 1000 "-" "Mozilla/5.0 (X11) \\x22q\\x22"\n')


class Installations(Scenario):
    """Proxies without a memory tier, so that only the filter can know; each has a directory of its own."""

    def setUp(self):
        self.origin = self.load_origin()
        self.targets = [f"/o/key{i}/1000" for i in range(COUNT)]

    def install(self, name, **tables):
        directory = self.path(name)
        os.makedirs(directory, exist_ok=True)
        cache = {"directory": directory, "memory": "0", "disk": "256MiB", **tables.pop("cache", {})}
        return self.file(f"{name}.toml", self.settings(self.origin.url, cache=cache, **tables))

    def start(self, config):
        log = config.replace(".toml", ".log")
        proxy = Proxy(config, log)
        self._logs.append(log)
        self.addCleanup(proxy.kill)
        return proxy

    def end(self, proxy):
        proxy.send(signal.SIGTERM)
        self.assertEqual(proxy.wait(), 0)

    def ask(self, proxy, word, targets=None):
        """Each target once; every answer has that word."""
        with Client(proxy.port) as client:
            for target in targets or self.targets:
                self.assertIn(word, client.get(target).cache, target)

    def sightings(self, *arguments, exit_code=0, stdin=None):
        run = subprocess.run([built("secondsight"), "sightings", *arguments], input=stdin,
                             capture_output=True, timeout=60, check=False, cwd=self.dir)
        text = (run.stdout + run.stderr).decode()
        self.assertEqual(run.returncode, exit_code, text)
        return text

    def share_seed(self, source, target):
        shutil.copy2(self.path(source, "seed"), self.path(target, "seed"))

    def remembered(self):
        """The path of a snapshot of all targets."""
        first = self.install("first")
        proxy = self.start(first)
        self.ask(proxy, FIRST)
        self.end(proxy)
        self.sightings("export", "--config", first)
        return self.path("sightings.bits")

    def log_lines(self, targets=None):
        """As nginx would have written them, up to now."""
        now = int(time.time())
        targets = targets or self.targets
        return "".join(
            LOGGED.format(target=target, time=time.strftime("%d/%b/%Y:%H:%M:%S +0000",
                                                            time.gmtime(now - len(targets) + i)))
            for i, target in enumerate(targets))


class Stopped(Installations):
    def test_what_one_remembers_another_begins_with(self):
        bits = self.remembered()
        self.assertEqual(stat.S_IMODE(os.stat(bits).st_mode), 0o600)
        second = self.install("second")
        self.share_seed("first", "second")
        self.assertIn("merged 1 generation", self.sightings("import", "--config", second, bits))
        self.assertIn("nothing in it was new", self.sightings("import", "--config", second, bits))
        proxy = self.start(second)
        self.ask(proxy, REPEAT)
        self.ask(proxy, FIRST, ["/o/stranger/1000"])
        self.end(proxy)

        # What was imported outlives another restart, and goes on to a third.
        self.sightings("export", "--config", second, "--out", self.path("onward.bits"))
        third = self.install("third")
        self.share_seed("first", "third")
        self.sightings("import", "--config", third, self.path("onward.bits"))
        self.ask(self.start(third), REPEAT, [*self.targets, "/o/stranger/1000"])

    def test_a_running_proxy_is_exported_from(self):
        first = self.install("first")
        proxy = self.start(first)
        self.ask(proxy, FIRST)
        eventually("the marks are written", lambda: metric(
            proxy, "secondsight_written_bytes_total", cause="journal") >= COUNT * 8)
        text = self.sightings("export", "--config", first)
        self.assertIn(f"{COUNT} sightings", text)
        second = self.install("second")
        self.share_seed("first", "second")
        self.sightings("import", "--config", second, self.path("sightings.bits"))
        self.ask(self.start(second), REPEAT)
        self.ask(proxy, REPEAT)

    def test_a_log_is_imported_before_the_first_start(self):
        config = self.install("first")
        text = self.sightings("import", "--config", config, "--host", HOST,
                              self.file("access.log", self.log_lines()))
        self.assertIn(f"{COUNT} logged sightings: merged 1 generation", text)
        proxy = self.start(config)
        self.ask(proxy, REPEAT)
        self.ask(proxy, FIRST, ["/o/stranger/1000"])

    def test_rotated_and_compressed_logs_and_standard_input(self):
        config = self.install("first")
        with gzip.open(self.path("access.log.2.gz"), "wt") as out:
            out.write(self.log_lines(self.targets[:20]))
        self.file("access.log.1", self.log_lines(self.targets[20:30]) + "not a line\n")
        text = self.sightings("import", "--config", config, "--host", HOST,
                              self.path("access.log.1"), self.path("access.log.2.gz"), "-",
                              stdin=self.log_lines(self.targets[30:]).encode())
        self.assertIn(f"{COUNT} logged sightings", text)
        self.assertIn("access.log.1: 11 lines, 1 of them not used", text)
        self.assertIn("line 11: no time", text)
        self.ask(self.start(config), REPEAT)

    def test_the_log_of_a_proxy_of_ours(self):
        first = self.install("first", log={"access": self.path("access.log")})
        proxy = self.start(first)
        self.ask(proxy, FIRST)
        self.end(proxy)
        second = self.install("second")
        self.sightings("import", "--config", second, self.path("access.log"))
        self.ask(self.start(second), REPEAT)

    def test_what_does_not_fit_is_refused_and_harms_nothing(self):
        bits = self.remembered()
        other_seed = self.install("other")
        self.end(self.start(other_seed))
        text = self.sightings("import", "--config", other_seed, bits, exit_code=1)
        self.assertIn("made under another seed", text)
        other_size = self.install("larger", admission={"expected_keys": 3_000_000})
        self.share_seed("first", "larger")
        text = self.sightings("import", "--config", other_size, bits, exit_code=1)
        self.assertIn("the same expected_keys and false_positive_rate", text)
        unseeded = self.install("unseeded")
        text = self.sightings("import", "--config", unseeded, bits, exit_code=1)
        self.assertIn("copy the seed file", text)

        config = self.path("first.toml")
        with open(bits, "rb") as whole:
            content = whole.read()
        for name, part in [("truncated", content[:len(content) // 4]), ("torn", b"\0" * 64 + content[64:]),
                           ("garbage", os.urandom(5000).replace(b"\x1f", b""))]:
            with open(self.path(name), "wb") as out:
                out.write(part)
            self.sightings("import", "--config", config, self.path(name), exit_code=1)
        self.assertIn("nothing to import",
                      self.sightings("import", "--config", config, self.file("empty.log", "")))
        self.sightings("export", "--config", config, exit_code=1)  # sightings.bits is there
        self.ask(self.start(config), REPEAT)
        self.ask(self.start(other_size), FIRST)

    def test_settings_without_sightings_are_a_usage_error(self):
        for tables in ({"cache": {"disk": "0"}}, {"admission": {"policy": "always"}}):
            config = self.install("without", **tables)
            self.sightings("import", "--config", config, self.file("x", ""), exit_code=2)
            self.sightings("export", "--config", config, exit_code=2)


class Running(Installations):
    def test_a_running_proxy_takes_a_snapshot_and_a_log(self):
        bits = self.remembered()
        second = self.install("second")
        self.share_seed("first", "second")
        proxy = self.start(second)
        admin = f"127.0.0.1:{proxy.admin_port}"
        self.ask(proxy, FIRST, ["/o/own/1000"])
        text = self.sightings("import", "--config", second, "--admin", admin, bits)
        self.assertIn("merged 1 generation", text)
        text = self.sightings("import", "--config", second, "--admin", admin, bits)
        self.assertIn("nothing in it was new", text)
        self.ask(proxy, REPEAT, [*self.targets[:20], "/o/own/1000"])

        more = [f"/o/more{i}/1000" for i in range(COUNT)]
        text = self.sightings("import", "--config", second, "--admin", admin, "--host", HOST,
                              self.file("access.log", self.log_lines(more)))
        self.assertIn(f"{COUNT} logged sightings: merged 1 generation", text)
        self.ask(proxy, REPEAT, more[:20])
        self.assertFalse(os.path.exists(self.path("second", "sightings-import.bits")))

        proxy.kill()  # what was imported is kept before it is answered
        self.ask(self.start(second), REPEAT, self.targets[20:] + more[20:])

    def test_a_running_proxy_refuses_what_does_not_fit(self):
        bits = self.remembered()
        other = self.install("other")
        proxy = self.start(other)
        text = self.sightings("import", "--config", other, "--admin",
                              f"127.0.0.1:{proxy.admin_port}", bits, exit_code=1)
        self.assertIn("made under another seed", text)
        text = self.sightings("import", "--config", other, bits, exit_code=1)
        self.assertIn("say which with --admin", text)
        # Asked without the command, there is nothing to take.
        with Client(proxy.admin_port) as client:
            client.connection.request("POST", "/sightings/import", body=b"")
            answer = client.connection.getresponse()
            told = json.loads(answer.read())
        self.assertEqual(answer.status, 409)
        self.assertIn("sightings-import.bits", told["reason"])
        self.assertEqual(get(proxy.admin_port, "/sightings/import").status, 405)
        self.ask(proxy, FIRST)


if __name__ == "__main__":
    unittest.main(verbosity=2)
