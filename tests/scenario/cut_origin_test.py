"""A body that the origin cut short is passed on as cut, and never stored."""

import unittest

from clients import curl, metric
from scenario import Scenario

FRESH = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\n"
LARGE = 6 << 20  # does not fit in the memory tier below: it would be written as it comes

CUT = {
    "/length": FRESH + b"Content-Length: 1000\r\n\r\n" + b"x" * 400,
    "/chunked": FRESH + b"Transfer-Encoding: chunked\r\n\r\n190\r\n" + b"x" * 0x190 + b"\r\n",
    "/within-a-chunk": FRESH + b"Transfer-Encoding: chunked\r\n\r\n190\r\n" + b"x" * 100,
    "/no-last-line": FRESH + b"Transfer-Encoding: chunked\r\n\r\n190\r\n" + b"x" * 0x190 + b"\r\n0\r\n",
    "/large-length": FRESH + b"Content-Length: %d\r\n\r\n" % LARGE + b"x" * (LARGE - 1),
    "/large-chunked": FRESH + b"Transfer-Encoding: chunked\r\n\r\n"
                      + (b"10000\r\n" + b"x" * 0x10000 + b"\r\n") * (LARGE >> 16),
}
CURL_PARTIAL_FILE = 18
CURL_RECEIVE_ERROR = 56


class CutOrigin(Scenario):
    def test_a_cut_body_is_never_stored(self):
        for policy in ("second-sighting", "always"):
            origin = self.scripted_origin(CUT.get)
            proxy = self.proxy(origin.url, admission={"policy": policy}, cache={"memory": "4MiB"})
            for target in CUT:
                for turn in range(4):
                    with self.subTest(target, policy=policy, turn=turn):
                        asked = len(origin.heads)
                        answer = self.cut_transfer(proxy.url(target))
                        self.assertFalse(answer.is_hit, answer.cache)
                        self.assertGreater(len(origin.heads), asked)
            self.assertEqual(metric(proxy, "secondsight_objects_written_total"), 0)
            self.assertEqual(metric(proxy, "secondsight_index_objects"), 0)
            proxy.kill()

    def cut_transfer(self, url):
        try:
            return curl(url, exit_code=CURL_PARTIAL_FILE)
        except AssertionError:
            return curl(url, exit_code=CURL_RECEIVE_ERROR)

    def test_a_cut_head_is_502(self):
        for cut in (b"", b"HTTP/1.1 200 OK\r\nContent-Le", b"nonsense\r\n\r\n"):
            with self.subTest(cut):
                origin = self.scripted_origin(lambda target, cut=cut: cut)
                proxy = self.proxy(origin.url)
                self.assertEqual(curl(proxy.url("/")).status, 502)
                proxy.kill()


if __name__ == "__main__":
    unittest.main(verbosity=2)
