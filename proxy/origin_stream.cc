#include "proxy/origin_stream.h"

#include <array>
#include <string>
#include <utility>

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>

#include "proxy/send_queue.h"

namespace secondsight::proxy {
namespace {

using boost::system::error_code;

/// The system's authorities, read once in a process.
net::ssl::context& verifying_context() {
  static net::ssl::context context = [] {
    net::ssl::context made(net::ssl::context::tls_client);
    made.set_default_verify_paths();
    made.set_verify_mode(net::ssl::verify_peer);
    made.set_options(net::ssl::context::no_tlsv1 | net::ssl::context::no_tlsv1_1);
    return made;
  }();
  return context;
}

}  // namespace

struct OriginStream::Tls {
  explicit Tls(tcp::socket& socket) : stream(socket, verifying_context()) {}
  net::ssl::stream<tcp::socket&> stream;
};

OriginStream::OriginStream(net::io_context& io) : io_(io), resolver_(io), socket_(io) {}

OriginStream::~OriginStream() = default;

net::awaitable<Result<>> OriginStream::connect(const OriginUrl& url) {
  is_closed_ = false;
  tls_.reset();
  socket_ = tcp::socket(io_);
  error_code error;
  const auto address = net::ip::make_address(url.host, error);
  if (!error) {
    const tcp::endpoint endpoint(address, url.port);
    const auto [failure] = co_await socket_.async_connect(endpoint, use_result);
    error = failure;
  } else {
    const std::string port = std::to_string(url.port);
    const auto [unknown, places] = co_await resolver_.async_resolve(
        url.host, port, tcp::resolver::numeric_service, use_result);
    error = unknown;
    if (!error && !is_closed_) {
      const auto [failure, endpoint] = co_await net::async_connect(socket_, places, use_result);
      error = failure;
    }
  }
  if (is_closed_) error = net::error::operation_aborted;
  if (error) co_return error;
  socket_.set_option(tcp::no_delay(true), error);
  if (error) co_return error;
  if (!url.tls) co_return Result<>{};
  co_return co_await shake_hands(url.host);
}

net::awaitable<Result<>> OriginStream::shake_hands(std::string_view host) {
  constexpr std::array<unsigned char, 9> kHttp1{8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  tls_ = std::make_unique<Tls>(socket_);
  std::string name(host);
  SSL* ssl = tls_->stream.native_handle();
  error_code error;
  net::ip::make_address(name, error);
  if (error)  // a name: what SSL_set_tlsext_host_name() does, without its cast
    SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data());
  SSL_set_alpn_protos(ssl, kHttp1.data(), kHttp1.size());
  tls_->stream.set_verify_callback(net::ssl::host_name_verification(name));
  const auto [failure] =
      co_await tls_->stream.async_handshake(net::ssl::stream_base::client, use_result);
  if (failure) co_return error_code(failure);
  co_return Result<>{};
}

net::awaitable<Result<std::size_t>> OriginStream::read_some(std::span<std::byte> out) {
  const net::mutable_buffer buffer(out.data(), out.size());
  error_code error;
  std::size_t bytes = 0;
  if (tls_) {
    const auto [failure, count] = co_await tls_->stream.async_read_some(buffer, use_result);
    error = failure == net::ssl::error::stream_truncated ? error_code(net::error::eof) : failure;
    if (failure == net::error::eof) co_return std::size_t{0};
    bytes = count;
  } else {
    const auto [failure, count] = co_await socket_.async_read_some(buffer, use_result);
    if (failure == net::error::eof) co_return std::size_t{0};
    error = failure;
    bytes = count;
  }
  if (error) co_return error;
  co_return bytes;
}

net::awaitable<Result<>> OriginStream::write(std::span<const std::byte> bytes) {
  const net::const_buffer buffer(bytes.data(), bytes.size());
  error_code error;
  if (tls_) {
    const auto [failure, count] = co_await net::async_write(tls_->stream, buffer, use_result);
    error = failure;
  } else {
    const auto [failure, count] = co_await net::async_write(socket_, buffer, use_result);
    error = failure;
  }
  if (error) co_return error;
  co_return Result<>{};
}

net::awaitable<Result<std::size_t>> OriginStream::write_some(std::span<const std::byte> bytes) {
  const net::const_buffer buffer(bytes.data(), bytes.size());
  error_code error;
  std::size_t taken = 0;
  if (tls_) {
    const auto [failure, count] = co_await tls_->stream.async_write_some(buffer, use_result);
    error = failure;
    taken = count;
  } else {
    const auto [failure, count] = co_await socket_.async_write_some(buffer, use_result);
    error = failure;
    taken = count;
  }
  if (error) co_return error;
  co_return taken;
}

std::size_t OriginStream::unsent_bytes() noexcept {
  return proxy::unsent_bytes(socket_);
}

bool OriginStream::end_sending() noexcept {
  if (tls_) return false;
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  return true;
}

void OriginStream::close() noexcept {
  is_closed_ = true;
  resolver_.cancel();
  error_code ignored;
  socket_.close(ignored);
}

}  // namespace secondsight::proxy
