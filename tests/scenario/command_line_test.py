"""Exit codes and messages: what a script and a person see before anything is served."""

import os
import socket
import stat
import subprocess
import unittest

from processes import built
from scenario import Scenario


class CommandLine(Scenario):
    def secondsight(self, *arguments):
        return subprocess.run([built("secondsight"), *arguments], capture_output=True, text=True,
                              timeout=10, check=False)

    def test_version_and_help(self):
        version = self.secondsight("--version")
        self.assertEqual((version.returncode, version.stderr), (0, ""))
        self.assertRegex(version.stdout, r"^secondsight \d+\.\d+\.\d+\n$")
        usage = self.secondsight("--help")
        self.assertEqual((usage.returncode, usage.stderr), (0, ""))
        for word in ("--config", "--check", "--version"):
            self.assertIn(word, usage.stdout)

    def test_bad_usage_is_2(self):
        for arguments in ((), ("--check",), ("--no-such-option",), ("--config",), ("stray",),
                          ("--config", self.path("missing.toml"))):
            with self.subTest(arguments):
                run = self.secondsight(*arguments)
                self.assertEqual((run.returncode, run.stdout), (2, ""))
                self.assertNotEqual(run.stderr, "")
        self.assertIn("--config FILE is missing", self.secondsight().stderr)

    def test_every_fault_has_its_line(self):
        config = self.file("faulty.toml", '[origin]\nurl = "ftp://a"\n\n[cache]\nmemroy = "1GiB"\n'
                                          'disk = "ten"\n')
        for arguments in (("--config", config), ("--check", "--config", config)):
            run = self.secondsight(*arguments)
            self.assertEqual((run.returncode, run.stdout), (2, ""))
            lines = run.stderr.splitlines()
            self.assertEqual(len(lines), 3, run.stderr)
            for line, number in zip(sorted(lines), (2, 5, 6)):
                self.assertTrue(line.startswith(f"{config}:{number}:"), line)
            self.assertIn('did you mean "memory"', run.stderr)

    def test_a_good_file_is_described(self):
        config = self.file("good.toml", self.settings("http://127.0.0.1:9"))
        run = self.secondsight("--check", "--config", config)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertIn("http://127.0.0.1:9", run.stdout)

    def test_a_filter_is_told_in_figures_and_what_it_cannot_be_has_its_line(self):
        config = self.file("filter.toml", self.settings(
            "http://127.0.0.1:9", admission={"expected_keys": 50_000_000},
            cache={"disk": "1TiB"}))
        run = self.secondsight("--check", "--config", config)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        for words in ("132 MiB for 50000000 keys", "0.91 % on average over the window",
                      "1.54 % at the worst instant", "at 2 times the planned keys",
                      "a generation lasts 2h24m", "would reach 99.8 %"):
            self.assertIn(words, run.stdout)
        self.assertNotIn("warning", run.stdout)
        for key, value, words in (("expected_keys", 10**11, "would need"),
                                  ("window", "1s", "shorter than the 1s280ms")):
            with self.subTest(key):
                text = self.settings("http://127.0.0.1:9", admission={key: value})
                line = [key in line for line in text.splitlines()].index(True) + 1
                run = self.secondsight("--check", "--config", self.file("bad.toml", text))
                self.assertEqual((run.returncode, run.stdout), (2, ""))
                self.assertTrue(run.stderr.startswith(f"{self.path('bad.toml')}:{line}:"),
                                run.stderr)
                self.assertIn(words, run.stderr)

    def test_the_seed_is_for_its_owner_alone_whatever_the_umask(self):
        for directory, mask in (("open", 0), ("usual", 0o022)):
            with self.subTest(directory):
                os.makedirs(self.path(directory))
                before = os.umask(mask)
                try:
                    proxy = self.proxy("http://127.0.0.1:9",
                                       cache={"directory": self.path(directory)})
                finally:
                    os.umask(before)
                seed = os.stat(self.path(directory, "seed"))
                self.assertEqual((stat.S_IMODE(seed.st_mode), seed.st_size), (0o600, 52))
                proxy.kill()
        with open(self.path("open", "seed"), "rb") as one, \
                open(self.path("usual", "seed"), "rb") as other:
            self.assertNotEqual(one.read(), other.read(), "a secret of each installation's own")

    def refused(self, name, **tables):
        config = self.file(name, self.settings("http://127.0.0.1:9", **tables))
        run = self.secondsight("--config", config)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertNotIn(" info ready", run.stderr)
        return run.stderr

    def test_a_port_in_use_is_1_and_named(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            for table in ("proxy", "admin"):
                message = self.refused("port.toml", **{table: {"listen": address}})
                self.assertIn(f"[{table}] listen", message)
                self.assertIn(address, message)
                self.assertIn("in use", message)

    def test_the_port_of_another_proxy_is_1(self):
        running = self.proxy("http://127.0.0.1:9")
        message = self.refused("second.toml", proxy={"listen": f"127.0.0.1:{running.port}"},
                               cache={"directory": self.path()})
        self.assertIn("in use", message)


if __name__ == "__main__":
    unittest.main(verbosity=2)
