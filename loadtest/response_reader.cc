#include "loadtest/response_reader.h"

#include <span>

#include <boost/asio/buffer.hpp>

namespace secondsight::loadtest {

namespace http = boost::beast::http;

ResponseReader::ResponseReader(const Body& expected)
    : verifier_(expected), size_bytes_(expected.size_bytes()) {
  eager(true);
  body_limit(boost::none);
}

std::size_t ResponseReader::feed(const char* bytes, std::size_t count) {
  error_code error;
  const std::size_t used = put(boost::asio::const_buffer(bytes, count), error);
  failed_ = failed_ || (error && error != http::error::need_more);
  return used;
}

void ResponseReader::feed_eof() {
  error_code error;
  if (started() && !done()) put_eof(error);
  failed_ = failed_ || error || !done();
}

Outcome ResponseReader::outcome() const noexcept {
  constexpr int kOk = 200;
  if (status_ != kOk) return Outcome::WrongStatus;
  if (body_bytes_ != size_bytes_) return Outcome::WrongLength;
  return right_ ? Outcome::Ok : Outcome::WrongBytes;
}

void ResponseReader::on_response_impl(int code, text, int, error_code&) {
  status_ = code;
}

void ResponseReader::on_field_impl(http::field, text name, text value, error_code&) {
  if (!boost::beast::iequals(name, "Cache-Status")) return;
  if (!cache_status_.empty()) cache_status_ += ", ";
  cache_status_.append(value.data(), value.size());
}

std::size_t ResponseReader::on_body_impl(text body, error_code&) {
  right_ = verifier_.feed(std::as_bytes(std::span(body.data(), body.size()))) && right_;
  body_bytes_ += body.size();
  return body.size();
}

std::size_t ResponseReader::on_chunk_body_impl(std::uint64_t, text body, error_code& error) {
  return on_body_impl(body, error);
}

}  // namespace secondsight::loadtest
