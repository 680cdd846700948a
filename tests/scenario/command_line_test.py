"""Exit codes and messages: what a script and a person see before anything is served."""

import socket
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
