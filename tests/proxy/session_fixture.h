#pragma once
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "proxy/session.h"
#include "tests/proxy/front_harness.h"

namespace secondsight::proxy {

using namespace std::chrono_literals;
using testing::RawResponse;

/// Answers with "METHOD target" and, when there is one, the body.
inline net::awaitable<void> echo(const Request& request, BodySource& body, ResponseSink& sink) {
  std::string text = request.method + ' ' + request.target;
  if (request.has_body()) {
    text += ' ';
    for (;;) {
      const auto piece = co_await body.next();
      if (piece.has_error()) co_return;
      if (piece->empty()) break;
      for (const std::byte b : *piece) text += static_cast<char>(b);
    }
  }
  co_await respond(sink, text, !request.is_head());
}

class SessionTest : public ::testing::Test, public FrontHarness {
 protected:
  SessionTest() { handler.function = echo; }
};

inline std::string get(std::string_view target, std::string_view fields = "") {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n";
}

/// Bytes whose place shows in them.
inline std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 + i / 251);
  return text;
}

/// A body in pieces of 64 KiB, which counts how far ahead of the client it got.
inline net::awaitable<void> write_large(ResponseSink& sink, const std::string& body,
                                        std::size_t& written, boost::system::error_code& error) {
  ResponseSink::Head head;
  head.ready = "HTTP/1.1 200 OK\r\n";
  head.content_length = body.size();
  sink.begin(head);
  while (written < body.size()) {
    const auto piece = bytes_of(body).subspan(written, std::min(64_KiB, body.size() - written));
    const auto result = co_await sink.write(std::span(&piece, 1));
    if (result.has_error()) {
      error = result.error();
      co_return;
    }
    written += piece.size();
  }
  (void)co_await sink.finish();
}

}  // namespace secondsight::proxy
