#include "loadtest/http_get.h"

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

namespace secondsight::loadtest {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

Result<std::string> http_get(const tcp::endpoint& server, const std::string& target,
                             std::chrono::milliseconds timeout) {
  net::io_context io(1);
  beast::tcp_stream stream(io);
  stream.expires_after(timeout);
  constexpr int kHttp11 = 11;
  http::request<http::empty_body> request(http::verb::get, target, kHttp11);
  request.set(http::field::host, server.address().to_string());
  request.keep_alive(false);
  constexpr std::size_t kDocumentBytesMax = 4u << 20;
  http::response_parser<http::string_body> parser;
  parser.body_limit(kDocumentBytesMax);
  beast::flat_buffer buffer;

  error_code result;
  stream.async_connect(server, [&](error_code error) {
    result = error;
    if (error) return;
    http::async_write(stream, request, [&](error_code write_error, std::size_t) {
      result = write_error;
      if (write_error) return;
      http::async_read(stream, buffer, parser,
                       [&](error_code read_error, std::size_t) { result = read_error; });
    });
  });
  io.run();
  if (result == beast::error::timeout) return make_error_code(boost::system::errc::timed_out);
  if (result == http::error::body_limit) return make_error_code(boost::system::errc::message_size);
  if (result) return result;
  if (parser.get().result() != http::status::ok) {
    return make_error_code(boost::system::errc::bad_message);
  }
  return std::move(parser.get().body());
}

}  // namespace secondsight::loadtest
