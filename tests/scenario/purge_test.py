"""What curl purges is gone: at once, and after a kill -9 that follows the answer."""

import json
import subprocess
import unittest

from clients import Client, HOST, curl, metric
from processes import eventually, program
from scenario import Scenario

TARGETS = ["/shop/1", "/shop/2", "/shop/2?page=2", "/news", "/large"]
LARGE_BYTES = 6 << 20  # written in parts


def body_of(target):
    return target.encode() * (LARGE_BYTES // len(target)) if target == "/large" else target.encode()


def cacheable(target):
    tags = "Surrogate-Key: shop page\r\n" if target.startswith("/shop") else "Cache-Tag: front, page\r\n"
    body = body_of(target)
    return (f"HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\n{tags}ETag: \"1\"\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n").encode() + body


class Purge(Scenario):
    def setUp(self):
        self.origin = self.scripted_origin(cacheable)

    def start(self, **tables):
        return self.proxy(self.origin.url, admission={"policy": "always"},
                          cache={"disk": "64MiB", "memory": "1MiB"}, **tables)

    def fill(self, proxy):
        with Client(proxy.port) as client:
            for target in TARGETS:
                self.assertEqual(client.get(target).body, body_of(target))
        eventually("all written", lambda: metric(proxy, "secondsight_index_objects") == len(TARGETS))

    def hits(self, proxy):
        """What is answered from the cache, and right."""
        found = []
        with Client(proxy.port) as client:
            for target in TARGETS:
                answer = client.get(target, Cache_Control="only-if-cached")
                if answer.status == 200:
                    self.assertEqual(answer.body, body_of(target))
                    found.append(target)
        return found

    def purge(self, proxy, what):
        """As the manual says: curl --json."""
        run = subprocess.run(
            [program("curl"), "--silent", "--show-error", "--json", json.dumps(what),
             "--write-out", "\n%{http_code}", f"http://127.0.0.1:{proxy.admin_port}/purge"],
            capture_output=True, text=True, check=True)
        body, code = run.stdout.rsplit("\n", 1)
        return int(code), json.loads(body)

    def test_each_scope_holds_after_a_kill(self):
        for what, left in [
                ({"url": f"http://{HOST}/shop/2"}, ["/shop/1", "/shop/2?page=2", "/news", "/large"]),
                ({"url": f"http://{HOST}/large"}, ["/shop/1", "/shop/2", "/shop/2?page=2", "/news"]),
                ({"prefix": f"http://{HOST}/shop/2"}, ["/shop/1", "/news", "/large"]),
                ({"tag": "shop"}, ["/news", "/large"]),
                ({"tags": ["front", "x"]}, ["/shop/1", "/shop/2", "/shop/2?page=2"]),
                ({"everything": True}, [])]:
            with self.subTest(what=what):
                proxy = self.start()
                self.fill(proxy)
                self.assertEqual(self.hits(proxy), TARGETS)
                code, told = self.purge(proxy, what)
                proxy.kill()  # at once
                self.assertEqual((code, told["durable"], told["soft"]), (200, True, False))
                proxy = self.proxy_again()
                self.assertEqual(self.hits(proxy), left)
                self.fill(proxy)  # what comes after it stays
                proxy.kill()
                proxy = self.proxy_again()
                self.assertEqual(self.hits(proxy), TARGETS)
                proxy.kill()

    def test_a_soft_purge_holds_after_a_kill(self):
        proxy = self.start()
        self.fill(proxy)
        self.assertEqual(self.purge(proxy, {"tag": "page", "soft": True})[0], 200)
        proxy.kill()
        proxy = self.proxy_again()
        self.assertEqual(self.hits(proxy), [])
        with Client(proxy.port) as client:
            answer = client.get("/news")
            self.assertIn("fwd=stale", answer.cache)
            self.assertEqual(answer.body, body_of("/news"))

    def test_purge_with_curl(self):
        proxy = self.start(purge={"allow": "127.0.0.1"})
        self.fill(proxy)
        answer = curl(proxy.url("/shop/1"), "--request", "PURGE")
        self.assertEqual(answer.status, 200)
        self.assertEqual(json.loads(answer.body), {
            "purged": [{"url": f"http://{HOST}/shop/1"}], "soft": False, "durable": True})
        self.assertEqual(self.hits(proxy), [target for target in TARGETS if target != "/shop/1"])
        self.assertIn("purge scope=url kind=hard", proxy.log())

    def test_who_is_not_listed_gets_403(self):
        proxy = self.start(purge={"allow": "192.0.2.0/24"})
        self.fill(proxy)
        self.assertEqual(curl(proxy.url("/shop/1"), "--request", "PURGE").status, 403)
        self.assertEqual(self.hits(proxy), TARGETS)

    def test_mistakes_purge_nothing(self):
        proxy = self.start()
        self.fill(proxy)
        code, told = self.purge(proxy, {"everything": True, "tag": "", "prefixes": []})
        self.assertEqual(code, 400)
        self.assertEqual(sorted(told["errors"]),
                         ['"prefixes" must not be empty', '"tag" must not be empty'])
        self.assertEqual(self.hits(proxy), TARGETS)


if __name__ == "__main__":
    unittest.main(verbosity=2)
