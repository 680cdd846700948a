#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <boost/beast/http/basic_parser.hpp>

#include "loadtest/body.h"
#include "loadtest/outcome.h"

namespace secondsight::loadtest {

/// Takes one HTTP/1.1 response as its bytes come and compares its body with what it should be,
/// without keeping it. One thread.
class ResponseReader final : private boost::beast::http::basic_parser<false> {
 public:
  explicit ResponseReader(const Body& expected);

  /// Takes bytes; returns how many were used (the rest must come again, with more behind it, unless
  /// done() or failed()).
  std::size_t feed(const char* bytes, std::size_t count);
  /// The peer closed: ends a body whose length was not told; anything else unfinished has failed.
  void feed_eof();

  bool started() const noexcept { return got_some(); }
  bool done() const noexcept { return is_done(); }
  bool failed() const noexcept { return failed_; }  // malformed or cut
  /// Of a response that is done.
  Outcome outcome() const noexcept;
  bool keeps_connection() const { return keep_alive(); }

  int status() const noexcept { return status_; }
  std::uint64_t body_bytes() const noexcept { return body_bytes_; }
  /// The Cache-Status field's lines, joined with ", ".
  std::string_view cache_status() const noexcept { return cache_status_; }

 private:
  using text = boost::beast::string_view;
  using error_code = boost::system::error_code;
  void on_response_impl(int code, text reason, int version, error_code&) override;
  void on_field_impl(boost::beast::http::field, text name, text value, error_code&) override;
  std::size_t on_body_impl(text body, error_code&) override;
  std::size_t on_chunk_body_impl(std::uint64_t remain, text body, error_code&) override;
  void on_request_impl(boost::beast::http::verb, text, text, int, error_code&) override {}
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  void on_chunk_header_impl(std::uint64_t, text, error_code&) override {}
  void on_finish_impl(error_code&) override {}

  BodyVerifier verifier_;
  std::uint64_t size_bytes_;
  int status_ = 0;
  std::uint64_t body_bytes_ = 0;
  bool right_ = true;
  bool failed_ = false;
  std::string cache_status_;
};

}  // namespace secondsight::loadtest
