"""What is ambiguous is answered 400, the connection ends, and the origin hears nothing of it."""

import re
import unittest

from clients import RawConnection, curl, parse_head
from scenario import Scenario

MALFORMED = [
    ("Content-Length and Transfer-Encoding",
     b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("two lengths that differ",
     b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde"),
    ("a length with a sign", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +4\r\n\r\nabcd"),
    ("a folded field", b"GET / HTTP/1.1\r\nHost: a\r\nX-Folded: one\r\n two\r\n\r\n"),
    ("a bare LF after the request line", b"GET / HTTP/1.1\nHost: a\r\n\r\n"),
    ("a bare LF after a field", b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"),
    ("a bare LF at the end", b"GET / HTTP/1.1\r\nHost: a\r\n\n"),
    ("a bare CR", b"GET / HTTP/1.1\r\nHost: a\r\nX: b\rc\r\n\r\n"),
    ("a NUL in a field", b"GET / HTTP/1.1\r\nHost: a\r\nX: b\0c\r\n\r\n"),
    ("a NUL in the target", b"GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a blank before the colon", b"GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n"),
    ("a blank before the first field", b"GET / HTTP/1.1\r\n Host: a\r\n\r\n"),
    ("a chunk size that is none",
     b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n0\r\n\r\n"),
    ("a chunk size beyond all bounds",
     b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n"),
    ("chunked, but not last",
     b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
    ("two Hosts", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
    ("no Host", b"GET / HTTP/1.1\r\nX: a\r\n\r\n"),
    ("a Host that is none", b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n"),
    ("a field name that is none", b"GET / HTTP/1.1\r\nHost: a\r\nX[]: b\r\n\r\n"),
    ("no version", b"GET /\r\n\r\n"),
    ("no HTTP at all", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"),
]


class Malformed(Scenario):
    def test_each_is_refused_and_none_reaches_the_origin(self):
        origin = self.nginx("location / { proxy_pass http://$SELF/whole; } location = /whole { return 204; }")
        proxy = self.proxy(origin.url)
        for name, request in MALFORMED:
            with self.subTest(name), RawConnection(proxy.port) as connection:
                # What follows would be answered, if the connection were still taken for one.
                connection.send(request + b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n")
                answer = connection.read_to_end()
                self.assertTrue(answer, "closed without an answer")
                status, fields = parse_head(answer.split(b"\r\n\r\n", 1)[0].decode("latin-1"))
                self.assertIn(status, (400, 501) if "last" in name else (400,), answer)
                self.assertIn(("connection", "close"), fields)
                self.assertEqual(answer.count(b"HTTP/1.1 "), 1, answer)
        # A body is passed on as it comes: the origin saw the beginning of those with a bad chunk, and
        # then their connection's end. To nginx, that is the client's fault (400) or leave (499).
        began = [line for line in origin.requests() if not re.match(r"POST / (400|499) ", line)]
        self.assertEqual(began, [])
        self.assertLessEqual(len(origin.requests()), sum("chunk size" in name for name, _ in MALFORMED))
        self.assertEqual(curl(proxy.url("/")).status, 204)


if __name__ == "__main__":
    unittest.main(verbosity=2)
