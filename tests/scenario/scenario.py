"""What the scenarios share: a temporary folder, programs that end with it, logs of what failed."""

import os
import shutil
import sys
import tempfile
import unittest

from origins import ScriptedOrigin
from processes import LoadOrigin, Nginx, Proxy, toml


class Scenario(unittest.TestCase):
    maxDiff = None
    longMessage = True

    def run(self, result=None):
        self.dir = tempfile.mkdtemp(prefix="secondsight-scenario-")
        self._logs = []
        faults = len(result.failures) + len(result.errors)
        try:
            return super().run(result)
        finally:
            if len(result.failures) + len(result.errors) > faults:
                self._show_logs()
            shutil.rmtree(self.dir, ignore_errors=True)

    def _show_logs(self):
        for path in self._logs:
            if os.path.exists(path):
                with open(path, encoding="utf-8", errors="replace") as log:
                    print(f"--- {path}\n{log.read()[-4000:]}", file=sys.stderr)

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def file(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as out:
            out.write(text)
        return self.path(name)

    def settings(self, origin_url, **tables):
        """Settings that fit a test, changed by `tables`."""
        all_tables = {
            "proxy": {"listen": "127.0.0.1:0", "workers": 2},
            "origin": {"url": origin_url},
            "cache": {"directory": self.path("cache"), "disk": "256MiB", "memory": "32MiB"},
            "admission": {"expected_keys": 100000},
            "admin": {"listen": "127.0.0.1:0"},
        }
        for name, table in tables.items():
            all_tables.setdefault(name, {}).update(table)
        os.makedirs(self.path("cache"), exist_ok=True)
        return toml(all_tables)

    def proxy(self, origin_url, **tables):
        self.file("secondsight.toml", self.settings(origin_url, **tables))
        return self.proxy_again()

    def proxy_again(self, seconds=10.0):
        """The same settings and folder as before."""
        log = self.path("secondsight.log")
        proxy = Proxy(self.path("secondsight.toml"), log, seconds)
        self._logs.append(log)
        self.addCleanup(proxy.kill)
        return proxy

    def nginx(self, locations, port=0):
        os.makedirs(self.path("nginx"), exist_ok=True)
        nginx = Nginx(self.path("nginx"), locations, port)
        self._logs += [nginx.log_path, self.path("nginx", "error.log")]
        self.addCleanup(nginx.kill)
        return nginx

    def load_origin(self):
        origin = LoadOrigin(self.path("origin.log"))
        self._logs.append(origin.log_path)
        self.addCleanup(origin.kill)
        return origin

    def scripted_origin(self, script):
        origin = ScriptedOrigin(script)
        self.addCleanup(origin.close)
        return origin
