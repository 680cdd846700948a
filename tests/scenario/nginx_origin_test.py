"""curl -> secondsight -> nginx: what a user tries in the first ten minutes."""

import hashlib
import os
import signal
import unittest

from clients import curl, metric
from processes import eventually
from scenario import Scenario

LOCATIONS = """
    location / { add_header Cache-Control "max-age=3600"; }
    location /brief/ { add_header Cache-Control "max-age=1, stale-if-error=600"; }
    location /text/ {
      add_header Cache-Control "max-age=3600";
      types { } default_type text/plain;
      gzip on; gzip_types text/plain; gzip_min_length 1; gzip_proxied any; gzip_vary on;
    }
    location /dav/ { dav_methods PUT; create_full_put_path on; add_header Cache-Control "max-age=3600"; }
    location = /post { proxy_pass http://$SELF/sink; }
    location = /sink { return 204; }
"""


class NginxOrigin(Scenario):
    def setUp(self):
        self.origin = self.nginx(LOCATIONS)

    def stop(self, proxy):
        proxy.send(signal.SIGTERM)
        self.assertEqual(proxy.wait(), 0)

    def asked(self, target):
        return [line for line in self.origin.requests() if line.split()[1] == target]

    def test_an_object_is_written_at_its_second_sighting(self):
        self.origin.put("/a.bin", b"payload " * 500)
        proxy = self.proxy(self.origin.url)
        first = curl(proxy.url("/a.bin"))
        self.assertEqual(first.status, 200)
        self.assertEqual(first.cache, "secondsight; fwd=uri-miss; stored; detail=first-sighting")
        self.assertEqual(metric(proxy, "secondsight_objects_written_total"), 0)
        second = curl(proxy.url("/a.bin"))
        self.assertEqual(second.cache, "secondsight; hit; stored; detail=memory")
        self.assertIsNotNone(second.get("age"))
        self.assertIn("secondsight", second.get("via"))
        third = curl(proxy.url("/a.bin"))
        self.assertTrue(third.is_hit, third.cache)
        eventually("one object written",
                   lambda: metric(proxy, "secondsight_objects_written_total") == 1)
        self.stop(proxy)

        proxy = self.proxy_again()
        again = curl(proxy.url("/a.bin"))
        self.assertEqual(again.cache, "secondsight; hit; detail=disk")
        for response in (first, second, third, again):
            self.assertEqual(response.body, b"payload " * 500)
            self.assertEqual(response.get("etag"), first.get("etag"))
        self.assertEqual(len(self.asked("/a.bin")), 1)

    def test_one_hit_objects_never_reach_the_disk(self):
        for i in range(50):
            self.origin.put(f"/once/{i}", b"x" * 1000)
        proxy = self.proxy(self.origin.url)
        for i in range(50):
            self.assertEqual(curl(proxy.url(f"/once/{i}")).status, 200)
        self.assertEqual(metric(proxy, "secondsight_objects_written_total"), 0)
        self.assertEqual(metric(proxy, "secondsight_written_bytes_total", cause="admitted"), 0)

    def test_head_range_and_conditions_are_answered_from_the_cache(self):
        body = bytes(range(256)) * 40
        self.origin.put("/r.bin", body)
        proxy = self.proxy(self.origin.url)
        head = curl(proxy.url("/r.bin"), "--head")
        self.assertEqual((head.status, head.body), (200, b""))
        self.assertEqual(head.get("content-length"), str(len(body)))

        whole = curl(proxy.url("/r.bin"))
        self.assertEqual(whole.body, body)
        head = curl(proxy.url("/r.bin"), "--head")
        self.assertTrue(head.is_hit, head.cache)
        self.assertEqual(head.get("content-length"), str(len(body)))

        part = curl(proxy.url("/r.bin"), "--range", "100-299")
        self.assertEqual((part.status, part.body), (206, body[100:300]))
        self.assertEqual(part.get("content-range"), f"bytes 100-299/{len(body)}")
        self.assertTrue(part.is_hit, part.cache)
        tail = curl(proxy.url("/r.bin"), "--range", "-5")
        self.assertEqual((tail.status, tail.body), (206, body[-5:]))
        beyond = curl(proxy.url("/r.bin"), "--range", "999999-")
        self.assertEqual(beyond.status, 416)

        for condition in (f"If-None-Match: {whole.get('etag')}",
                          f"If-Modified-Since: {whole.get('last-modified')}"):
            same = curl(proxy.url("/r.bin"), "--header", condition)
            self.assertEqual((same.status, same.body), (304, b""), condition)
            self.assertTrue(same.is_hit, same.cache)
        other = curl(proxy.url("/r.bin"), "--header", 'If-None-Match: "other"')
        self.assertEqual((other.status, other.body), (200, body))
        self.assertEqual(len([x for x in self.asked("/r.bin") if x.startswith("GET")]), 1)

    def test_a_range_of_what_is_not_stored_comes_from_the_origin(self):
        self.origin.put("/part.bin", b"0123456789")
        proxy = self.proxy(self.origin.url)
        part = curl(proxy.url("/part.bin"), "--range", "2-4")
        self.assertEqual((part.status, part.body), (206, b"234"))
        whole = curl(proxy.url("/part.bin"))
        self.assertEqual((whole.status, whole.body), (200, b"0123456789"))

    def test_a_stale_object_is_validated(self):
        self.origin.put("/brief/v", b"validated")
        proxy = self.proxy(self.origin.url)
        curl(proxy.url("/brief/v"))
        answer = eventually("a stale look-up",
                            lambda: (r := curl(proxy.url("/brief/v"))) and not r.is_hit and r)
        self.assertIn("fwd=stale; fwd-status=304", answer.cache)
        self.assertEqual((answer.status, answer.body), (200, b"validated"))
        self.assertTrue(curl(proxy.url("/brief/v")).is_hit)

    def test_compressed_and_plain_variants_are_kept_apart(self):
        text = b"the same line over and over\n" * 200
        self.origin.put("/text/t", text)
        proxy = self.proxy(self.origin.url)
        for turn in range(3):
            packed = curl(proxy.url("/text/t"), "--header", "Accept-Encoding: gzip")
            plain = curl(proxy.url("/text/t"))
            self.assertEqual(packed.get("content-encoding"), "gzip")
            self.assertIsNone(plain.get("content-encoding"))
            self.assertEqual(packed.body[:2], b"\x1f\x8b")  # as it is, not unpacked
            self.assertLess(len(packed.body), len(text))
            self.assertEqual(plain.body, text)
            self.assertEqual(packed.get("vary"), "Accept-Encoding")
            self.assertEqual((packed.is_hit, plain.is_hit), (turn > 0, turn > 0))
        unpacked = curl(proxy.url("/text/t"), "--compressed", "--header", "Accept-Encoding: gzip")
        self.assertEqual(unpacked.body, text)
        self.assertEqual(len(self.asked("/text/t")), 2)
        self.stop(proxy)

        proxy = self.proxy_again()
        packed = curl(proxy.url("/text/t"), "--header", "Accept-Encoding: gzip")
        self.assertEqual((packed.is_hit, packed.get("content-encoding")), (True, "gzip"))

    def test_an_upload_reaches_the_origin_whole_and_invalidates(self):
        proxy = self.proxy(self.origin.url)
        old, new = os.urandom(1000), os.urandom(20 << 20)
        self.origin.put("/dav/file", old)
        for _ in range(2):
            self.assertEqual(curl(proxy.url("/dav/file")).body, old)
        with open(self.path("new"), "wb") as out:
            out.write(new)
        for framing in ("Expect: 100-continue", "Transfer-Encoding: chunked"):
            sent = curl(proxy.url("/dav/file"), "--upload-file", self.path("new"), "--header", framing)
            self.assertIn(sent.status, (201, 204), framing)
            self.assertIn("fwd=method", sent.cache)
            with open(os.path.join(self.origin.www, "dav/file"), "rb") as stored:
                self.assertEqual(hashlib.sha256(stored.read()).digest(), hashlib.sha256(new).digest())
            got = curl(proxy.url("/dav/file"))
            self.assertFalse(got.is_hit)
            self.assertEqual(got.sha256, hashlib.sha256(new).hexdigest())

    def test_a_post_passes(self):
        proxy = self.proxy(self.origin.url)
        with open(self.path("body"), "wb") as out:
            out.write(os.urandom(3_000_000))
        answer = curl(proxy.url("/post"), "--data-binary", "@" + self.path("body"))
        self.assertEqual(answer.status, 204)
        line = eventually("the access log's line", lambda: self.asked("/post"))[0].split()
        self.assertGreater(int(line[3]), 3_000_000)

    def test_a_large_file_is_the_same_on_every_way(self):
        digest = hashlib.sha256()
        with open(os.path.join(self.origin.www, "large"), "wb") as out:
            for _ in range(200):
                piece = os.urandom(1 << 20)
                digest.update(piece)
                out.write(piece)
        proxy = self.proxy(self.origin.url, cache={"disk": "1GiB"})
        for expected in ("fwd=uri-miss; detail=first-sighting", "fwd=uri-miss; stored; detail=repeat",
                         "hit; detail=disk"):
            answer = curl(proxy.url("/large"), body_path=self.path("got"))
            self.assertEqual((answer.status, answer.cache), (200, "secondsight; " + expected))
            with open(self.path("got"), "rb") as got:
                self.assertEqual(hashlib.file_digest(got, "sha256").hexdigest(), digest.hexdigest())
            if "repeat" in expected:
                eventually("the large file written",
                           lambda: metric(proxy, "secondsight_objects_written_total") == 1, 30)
        part = curl(proxy.url("/large"), "--range", "150000000-150000999")
        with open(os.path.join(self.origin.www, "large"), "rb") as large:
            large.seek(150_000_000)
            self.assertEqual((part.status, part.body), (206, large.read(1000)))
        self.assertTrue(part.is_hit, part.cache)


class OriginTrouble(Scenario):
    def test_a_dead_origin_is_502_or_a_stale_answer(self):
        origin = self.nginx(LOCATIONS)
        origin.put("/brief/kept", b"still here")
        origin.put("/fresh", b"fresh")
        proxy = self.proxy(origin.url)
        self.assertEqual(curl(proxy.url("/brief/kept")).status, 200)
        self.assertEqual(curl(proxy.url("/fresh")).status, 200)
        origin.kill()

        missing = curl(proxy.url("/unknown"))
        self.assertEqual(missing.status, 502)
        self.assertEqual(missing.get("cache-control"), "no-store")
        self.assertTrue(curl(proxy.url("/fresh")).is_hit)
        stale = eventually("an answer past its lifetime",
                           lambda: (r := curl(proxy.url("/brief/kept"))) and int(r.get("age")) > 1 and r)
        self.assertEqual((stale.status, stale.body), (200, b"still here"))

        self.nginx(LOCATIONS, port=origin.port)
        back = eventually("the origin's return",
                          lambda: (r := curl(proxy.url("/unknown"))).status == 404 and r)
        self.assertIn("fwd=uri-miss", back.cache)

    def test_a_restarted_origin_costs_no_request(self):
        origin = self.nginx(LOCATIONS)
        proxy = self.proxy(origin.url)
        with open(self.path("body"), "wb") as out:
            out.write(os.urandom(100_000))
        ways = {
            "/missing": (404, []),
            "/post": (204, ["--data-binary", "@" + self.path("body")]),
            "/dav/new": (201, ["--upload-file", self.path("body"), "--header", "Transfer-Encoding: chunked"]),
        }
        for target, (status, options) in ways.items():
            with self.subTest(target):
                for _ in range(3):
                    self.assertEqual(curl(proxy.url("/missing")).status, 404)
                origin.kill()  # the proxy's kept connections end here
                origin = self.nginx(LOCATIONS, port=origin.port)
                self.assertEqual(curl(proxy.url(target), *options).status, status)

    def test_a_silent_origin_is_504(self):
        origin = self.scripted_origin(lambda target: None)
        proxy = self.proxy(origin.url, origin={"response_timeout": "1s"})
        answer = curl(proxy.url("/slow"))
        self.assertEqual(answer.status, 504)
        self.assertEqual(len(origin.heads), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
