"""secondsight explain, the real program asking the real proxy: what it says, and its exit codes."""

import json
import socket
import subprocess
import unittest

from clients import HOST, get
from processes import built, eventually
from scenario import Scenario


def answer(target):
    """Kind of response by the target's first letter after the slash."""
    fields = {
        "a": "Cache-Control: max-age=600\r\nETag: \"v1\"\r\n",
        "s": "Cache-Control: max-age=0, stale-if-error=600\r\nETag: \"v1\"\r\n",
        "p": "Cache-Control: private\r\n",
        "v": "Cache-Control: max-age=600\r\nVary: Accept-Language\r\nETag: \"v1\"\r\n",
        "t": "CDN-Cache-Control: max-age=600\r\nCache-Control: no-store\r\n",
    }[target[1]]
    return f"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n{fields}\r\nhello".encode()


class Explain(Scenario):
    def setUp(self):
        self.running = self.proxy(self.scripted_origin(answer).url)

    def explain(self, *arguments, port=None):
        return subprocess.run(
            [built("secondsight"), "explain", "--admin",
             f"127.0.0.1:{port or self.running.admin_port}", *arguments],
            capture_output=True, text=True, timeout=30, check=False)

    def words(self, target, *arguments):
        """{label: text}, of lines that are aligned."""
        run = self.explain(f"http://{HOST}{target}", *arguments)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        for line in run.stdout.splitlines():
            self.assertRegex(line, r"^[a-z ]{12} [^ ]", run.stdout)
        return {line[:13].strip(): line[13:] for line in run.stdout.splitlines()}

    def facts(self, target, *arguments):
        run = self.explain("--json", f"http://{HOST}{target}", *arguments)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return json.loads(run.stdout)

    def get(self, target, **fields):
        return get(self.running.port, target, **fields)

    def test_never_asked_for(self):
        words = self.words("/a")
        self.assertEqual(words["request"], f"GET http://{HOST}/a")
        self.assertEqual(words["stored"], "no")
        self.assertEqual(words["next"], "fetched from the origin: uri-miss")
        self.assertIn("first sighting", words["filter"])
        self.assertEqual(self.get("/a").cache,
                         "secondsight; fwd=uri-miss; stored; detail=first-sighting")

    def test_first_sighting_in_memory_then_on_disk(self):
        self.get("/a")
        words = self.words("/a")
        self.assertEqual(words["stored"], '200 OK, 5 B, entity tag "v1"')
        self.assertEqual(words["where"], "in memory")
        self.assertRegex(words["fresh"], r"^until .* GMT, (10m|9m\d+s) left$")
        self.assertEqual(words["next"], "a hit in memory")
        self.assertIn("second sighting", words["then"])
        self.assertEqual(self.get("/a").cache, "secondsight; hit; stored; detail=memory")
        eventually("on disk", lambda: self.facts("/a")["object"]["on_disk"])
        self.assertEqual(self.words("/a")["where"], "in memory, on disk")
        self.running.send(15)
        self.running.wait()
        self.running = self.proxy_again()
        self.assertEqual(self.words("/a")["where"], "on disk")
        self.assertEqual(self.words("/a")["next"], "a hit on disk")

    def test_stale_with_validators(self):
        self.get("/s")
        words = self.words("/s")
        self.assertRegex(words["fresh"], r"^no: stale since .* GMT, for \d+s$")
        self.assertRegex(words["stale use"], r"^until .* GMT, if the origin fails$")
        self.assertEqual(words["next"], 'validated with If-None-Match: "v1": stale')

    def test_uncacheable(self):
        self.get("/p")
        words = self.words("/p")
        self.assertEqual(words["stored"], "no")
        self.assertIn("uncacheable", words)

    def test_another_language(self):
        self.get("/v", Accept_Language="de")
        self.assertEqual(self.words("/v", "-H", "Accept-Language: de")["next"], "a hit in memory")
        words = self.words("/v", "-H", "Accept-Language: en")
        self.assertEqual(words["variant"], "accept-language: en")
        self.assertEqual(words["variants"], "1 listed")
        self.assertEqual(words["next"], "fetched from the origin: vary-miss")
        self.assertTrue(words["names"].startswith('"v1": '), words["names"])
        self.assertEqual(self.facts("/v")["variant"]["fields"],
                         [{"name": "accept-language", "value": None}])

    def test_a_range(self):
        self.assertIn("that part alone", self.words("/a", "-H", "Range: bytes=1-2")["range"])
        self.get("/a")
        self.assertEqual(self.words("/a", "-H", "Range: bytes=1-2")["range"], "206: bytes 1-2 of 5")
        parts = self.facts("/a", "-H", "Range: bytes=1-2")["next"]["range"]["parts"]
        self.assertEqual(parts, [{"first": 1, "last": 2}])
        self.assertEqual(self.get("/a", Range="bytes=1-2").body, b"el")

    def test_a_field_for_this_cache_alone(self):
        self.get("/t")
        self.assertIn("as CDN-Cache-Control alone decides", self.words("/t")["age"])

    def test_what_the_cache_has_no_part_in(self):
        words = self.words("/a", "-H", "Connection: Upgrade", "-H", "Upgrade: websocket")
        self.assertEqual(words["next"], "passed to the origin as an upgrade to websocket")
        words = self.words("/a", "-X", "OPTIONS", "-H", "Max-Forwards: 0")
        self.assertEqual(words["next"], "200, without asking the origin")

    def test_a_path_with_its_host_and_a_method(self):
        run = self.explain("/a", "-H", f"Host: {HOST}", "-X", "DELETE")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn(f"DELETE http://{HOST}/a", run.stdout)
        self.assertIn("passed on to the origin", run.stdout)

    def test_bad_usage_is_2(self):
        for arguments in ((), ("ftp://a/b",), ("/a",), ("http://a/b", "-H", "nothing"),
                          ("http://a/b", "--no-such"), ("http://a/b", "-X", "CONNECT"),
                          ("http://a/b", "--config", self.path("missing.toml"), "--admin", "x")):
            with self.subTest(arguments):
                run = self.explain(*arguments)
                self.assertEqual((run.returncode, run.stdout), (2, ""))
                self.assertIn("secondsight: ", run.stderr)

    def test_no_proxy_is_1(self):
        with socket.socket() as unused:  # bound, so that nobody else takes it; not listening
            unused.bind(("127.0.0.1", 0))
            run = self.explain("http://a/b", port=unused.getsockname()[1])
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertIn("cannot ask the proxy at 127.0.0.1:", run.stderr)

    def test_the_configuration_says_where(self):
        config = self.file("admin.toml", '[origin]\nurl = "http://127.0.0.1:9"\n[admin]\n'
                                         f'listen = "127.0.0.1:{self.running.admin_port}"\n')
        run = subprocess.run([built("secondsight"), "explain", "--config", config, "http://a/b"],
                             capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
