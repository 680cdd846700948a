#include "proxy/session.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/container/small_vector.hpp>

#include "config/check.h"
#include "config/log.h"
#include "proxy/send_queue.h"

namespace secondsight::proxy {
namespace {

using boost::system::error_code;
using namespace std::chrono_literals;

constexpr std::size_t kReadBytes = 4_KiB;       // a head fits mostly; what an idle connection keeps
constexpr std::size_t kBodyReadBytes = 16_KiB;  // at least, while a body comes
constexpr std::size_t kEmptyLineBytes = 16;     // more than the parser tolerates before a head
constexpr std::uint64_t kSkipBytesMax = 64_KiB;  // of a body nobody wanted, to keep the connection
constexpr std::size_t kLingerBytesMax = 1_MiB;   // read after a refusal, so that it arrives
constexpr std::chrono::milliseconds kLinger = 2s;  // and how long
constexpr std::size_t kBurstBytes = 1_MiB;         // sent before other sessions get their turn
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr std::string_view kCrlf = "\r\n";
constexpr std::string_view kLastChunkSize = "0\r\n";

net::const_buffer buffer_of(std::string_view text) {
  return {text.data(), text.size()};
}

bool would_block(const error_code& error) {
  return error == net::error::would_block || error == net::error::try_again;
}

void append_number(std::string& out, std::uint64_t number) {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

/// "<size in hexadecimal>\r\n"
class ChunkSizeLine {
 public:
  explicit ChunkSizeLine(std::uint64_t bytes) {
    char* end = std::to_chars(text_.data(), text_.data() + 16, bytes, 16).ptr;
    *end++ = '\r';
    *end++ = '\n';
    size_ = static_cast<std::size_t>(end - text_.data());
  }
  net::const_buffer buffer() const { return {text_.data(), size_}; }

 private:
  std::array<char, 18> text_;
  std::size_t size_;
};

}  // namespace

Session::Session(tcp::socket socket, SessionSet& set)
    : socket_(std::move(socket)),
      set_(set),
      buffer_(
          std::max<std::size_t>(set.settings_.max_header_bytes + kEmptyLineBytes, kBodyReadBytes)),
      parser_(RequestLimits{set.settings_.max_header_bytes, set.settings_.max_header_fields,
                            set.settings_.max_request_body}) {
  error_code ignored;  // a connection that is gone already fails at its first read
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.non_blocking(true, ignored);
  set_.sessions_.push_back(*this);
  ++set_.count_;
  set_.metrics_.connection_opened();
}

Session::~Session() {
  --set_.count_;
  set_.metrics_.connection_closed();
}

net::awaitable<void> Session::run() {
  while (co_await read_request()) {
    start_exchange();
    co_await set_.handler_.handle(request_, *this, *this);
    if (begun_ && !finished_) abort();
    if (broken_) break;
    if (!begun_) {
      std::string_view response = closing_response(body_fault_ ? status_of(*body_fault_) : 500);
      if (request_.is_head()) response = response.substr(0, response.find("\r\n\r\n") + 4);
      co_await refuse(response);
      break;
    }
    if (!keep_ || set_.draining()) {
      error_code ignored;
      const bool is_client_done =
          decoder_.done() && buffer_.size() == piece_bytes_ && socket_.available(ignored) == 0;
      if (!is_client_done) co_await linger();
      break;
    }
    if (!co_await skip_body()) break;
  }
  close();
}

// --- waiting ---

void Session::Waiting::begin(Wait what) noexcept {
  kind = what;
  is_clock_running = false;
}

/// True when the wait was cut, which by its kind is a timeout or a drain.
bool Session::Waiting::end(const error_code& error) noexcept {
  kind = Wait::None;
  return std::exchange(is_cut, false) && error == net::error::operation_aborted;
}

void Session::tick(SteadyTime now) {
  tick(reading_, now);
  tick(writing_, now);
}

void Session::tick(Waiting& waiting, SteadyTime now) noexcept {
  // A tunnel's silence is no fault of one side: who carries it counts the time.
  if (waiting.kind == Wait::None || waiting.kind == Wait::Tunnel) return;
  if (!waiting.is_clock_running) return start_clock(waiting, now);
  if (now < waiting.deadline) return;
  if (waiting.kind == Wait::Write && unsent_bytes(socket_) < waiting.unsent_bytes)
    return start_clock(waiting, now);  // the client reads, if not enough to make room
  cut(waiting);
}

void Session::start_clock(Waiting& waiting, SteadyTime now) noexcept {
  waiting.deadline = now + timeout_of(waiting.kind);
  waiting.is_clock_running = true;
  if (waiting.kind == Wait::Write) waiting.unsent_bytes = unsent_bytes(socket_);
}

void Session::begin_drain() {
  if (reading_.kind == Wait::Idle) cut(reading_);
}

/// Ends the operation under way. If it has just succeeded, cancel() does nothing and neither does
/// this.
void Session::cut(Waiting& waiting) noexcept {
  waiting.is_cut = true;
  error_code ignored;
  socket_.cancel(ignored);
}

std::chrono::milliseconds Session::timeout_of(Wait wait) const noexcept {
  switch (wait) {
    case Wait::Idle:
      return set_.settings_.idle_timeout;
    case Wait::Head:
      return set_.settings_.header_timeout;
    case Wait::Linger:
      return kLinger;
    default:
      return set_.settings_.body_timeout;
  }
}

// --- requests ---

std::string_view Session::buffered() const noexcept {
  const auto data = buffer_.cdata();
  return {static_cast<const char*>(data.data()), data.size()};
}

/// Room for the next read: what is allocated, and more only when that is nearly full.
net::mutable_buffer Session::read_room(std::size_t bytes_min) {
  const std::size_t spare = buffer_.capacity() - buffer_.size();
  const std::size_t wanted = spare >= bytes_min / 4 ? spare : bytes_min;
  return buffer_.prepare(
      std::min(std::max<std::size_t>(wanted, 1), buffer_.max_size() - buffer_.size()));
}

/// False when there is none to answer: closed, refused, timed out, drained.
net::awaitable<bool> Session::read_request() {
  parser_.reset();
  for (;;) {
    switch (parser_.parse(buffered(), request_)) {
      case RequestParser::Outcome::Complete:
        reading_.kind = Wait::None;
        buffer_.consume(parser_.head_bytes());
        request_.client = request_.method == "PURGE" ? client_address() : std::nullopt;
        co_return true;
      case RequestParser::Outcome::Failed:
        reading_.kind = Wait::None;
        set_.metrics_.malformed(parser_.fault()).add();
        co_await refuse(closing_response(status_of(parser_.fault())));
        co_return false;
      case RequestParser::Outcome::NeedMore:
        break;
    }
    // One clock for a whole head and one for the time before it, however many reads they take.
    const Wait wait = parser_.started() ? Wait::Head : Wait::Idle;
    if (reading_.kind != wait) reading_.begin(wait);
    if (wait == Wait::Idle && set_.draining()) co_return false;
    if (buffer_.size() == 0 && buffer_.capacity() > kReadBytes) buffer_.shrink_to_fit();
    const auto [error, bytes] = co_await socket_.async_read_some(read_room(kReadBytes), use_result);
    if (error) {
      if (reading_.end(error) && wait == Wait::Head) {
        set_.metrics_.malformed(RequestFault::HeaderTimeout).add();
        co_await refuse(closing_response(status_of(RequestFault::HeaderTimeout)));
      }
      co_return false;
    }
    reading_.is_cut = false;
    buffer_.commit(bytes);
  }
}

/// Asked for only where it counts: it costs a system call.
std::optional<IpAddress> Session::client_address() const {
  boost::system::error_code error;
  const auto endpoint = socket_.remote_endpoint(error);
  if (error) return std::nullopt;
  const net::ip::address address = endpoint.address();
  if (address.is_v4()) return IpAddress::of_v4(address.to_v4().to_bytes());
  return IpAddress{address.to_v6().to_bytes()};
}

void Session::start_exchange() {
  if (request_.chunked) {
    decoder_.start_chunked(set_.settings_.max_request_body, set_.settings_.max_header_bytes);
  } else {
    decoder_.start_length(request_.content_length.value_or(0));
  }
  piece_bytes_ = 0;
  is_continue_due_ = request_.expects_continue;
  body_fault_.reset();
  head_.clear();
  promised_bytes_ = written_bytes_ = 0;
  framing_ = Framing::Length;
  begun_ = finished_ = has_trailers_ = false;
  keep_ = true;
}

net::awaitable<Result<std::span<const std::byte>>> Session::next() {
  buffer_.consume(std::exchange(piece_bytes_, 0));
  if (framing_ == Framing::Tunnel) co_return co_await next_of_tunnel();
  for (;;) {
    if (broken_) co_return error_code(net::error::connection_aborted);
    const std::string_view bytes = buffered();
    const BodyDecoder::Step step = decoder_.next(std::as_bytes(std::span(bytes)));
    if (step.outcome == BodyDecoder::Outcome::Data) {
      piece_bytes_ = step.taken;
      co_return step.data;
    }
    buffer_.consume(step.taken);
    if (step.outcome == BodyDecoder::Outcome::End) co_return std::span<const std::byte>{};
    if (step.outcome == BodyDecoder::Outcome::Failed) co_return body_failed(decoder_.fault());
    if (std::exchange(is_continue_due_, false) && !begun_ && !send_continue())
      co_return error_code(net::error::connection_aborted);
    reading_.begin(Wait::Body);
    const auto [error, count] =
        co_await socket_.async_read_some(read_room(kBodyReadBytes), use_result);
    if (reading_.end(error)) co_return body_failed(RequestFault::BodyTimeout);
    if (error) {
      broken_ = true;
      co_return error;
    }
    buffer_.commit(count);
  }
}

net::awaitable<Result<std::span<const std::byte>>> Session::next_of_tunnel() {
  if (broken_) co_return error_code(net::error::connection_aborted);
  if (buffer_.size() == 0) {
    reading_.begin(Wait::Tunnel);
    const auto [error, count] =
        co_await socket_.async_read_some(read_room(kBodyReadBytes), use_result);
    reading_.end(error);
    if (error == net::error::eof) co_return std::span<const std::byte>{};
    if (error) {
      broken_ = true;
      co_return error;
    }
    buffer_.commit(count);
  }
  piece_bytes_ = buffer_.size();
  co_return std::as_bytes(std::span(buffered()));
}

/// Never waits, so that it cannot get between a head and its body: 25 bytes that the socket has no
/// room for mean a client that does not read, and end the connection.
bool Session::send_continue() {
  if (is_sending_interim_) return is_continue_held_ = true;
  std::array<net::const_buffer, 1> interim{buffer_of(kContinue)};
  std::span<net::const_buffer> left(interim);
  error_code error;
  send_at_once(left, error);
  broken_ = static_cast<bool>(error);
  return !broken_;
}

/// Notes why, once, for the answer and the metric.
error_code Session::body_failed(RequestFault fault) {
  if (!body_fault_) set_.metrics_.malformed(fault).add();
  body_fault_ = fault;
  keep_ = false;
  if (fault == RequestFault::BodyTimeout) return net::error::timed_out;
  if (fault == RequestFault::BodyTooLarge) return net::error::message_size;
  return make_error_code(boost::system::errc::bad_message);
}

/// Reads what the handler left of the body, if that is little: false when the connection must end.
net::awaitable<bool> Session::skip_body() {
  std::uint64_t skipped = 0;
  while (skipped <= kSkipBytesMax) {
    const auto piece = co_await next();
    if (piece.has_error()) co_return false;
    if (piece->empty()) co_return true;
    skipped += piece->size();
  }
  co_await linger();
  co_return false;
}

// --- responses ---

/// Whether the connection can serve no other request, as far as is known when the response begins.
bool Session::must_close_after() const {
  if (!request_.keep_alive || set_.draining() || body_fault_) return true;
  if (decoder_.done()) return false;
  // A client that still waits for 100 may send the body or not: nobody can tell where it would end.
  return is_continue_due_ || decoder_.remaining().value_or(0) > kSkipBytesMax;
}

net::awaitable<Result<>> Session::send_interim(std::string_view head) {
  CHECK(!begun_);
  if (broken_) co_return error_code(net::error::connection_aborted);
  if (request_.version < 11) co_return Result<>{};
  std::array<net::const_buffer, 2> buffers{buffer_of(head), buffer_of(kCrlf)};
  is_sending_interim_ = true;
  auto result = co_await send(buffers);
  is_sending_interim_ = false;
  if (std::exchange(is_continue_held_, false) && result && !send_continue())
    co_return error_code(net::error::connection_aborted);
  co_return result;
}

void Session::begin(const Head& head) {
  CHECK(!begun_);
  begun_ = true;
  promised_bytes_ = head.has_body ? head.content_length.value_or(0) : 0;
  if (head.status == 101) {
    framing_ = Framing::Tunnel;
  } else if (head.has_body && !head.content_length) {
    framing_ = request_.version == 11 ? Framing::Chunked : Framing::UntilClose;
  }
  keep_ = framing_ != Framing::UntilClose && framing_ != Framing::Tunnel && !must_close_after();

  head_.assign(head.status_line).append(head.ready).append(head.patched);
  if (head.content_length && head.status >= 200 && head.status != 204) {
    head_.append("Content-Length: ");
    append_number(head_, *head.content_length);
    head_.append(kCrlf);
  } else if (framing_ == Framing::Chunked) {
    head_.append("Transfer-Encoding: chunked\r\n");
  }
  if (framing_ == Framing::Tunnel) {
    // Its Connection field is among those given.
  } else if (!keep_) {
    head_.append("Connection: close\r\n");
  } else if (request_.version == 10) {
    head_.append("Connection: keep-alive\r\n");
  }
  head_.append(kCrlf);
}

net::awaitable<Result<>> Session::write(std::span<const std::span<const std::byte>> pieces) {
  CHECK(begun_ && !finished_);
  if (broken_) co_return error_code(net::error::connection_aborted);
  std::uint64_t bytes = 0;
  for (const auto piece : pieces) bytes += piece.size();
  if (bytes == 0) co_return Result<>{};
  if (framing_ == Framing::Length && bytes > promised_bytes_ - written_bytes_) {
    abort();  // more would be read as the next response
    co_return error_code(net::error::message_size);
  }
  written_bytes_ += bytes;

  const ChunkSizeLine size_line(bytes);
  boost::container::small_vector<net::const_buffer, 16> buffers;
  if (!head_.empty()) buffers.push_back(buffer_of(head_));
  if (framing_ == Framing::Chunked) buffers.push_back(size_line.buffer());
  for (const auto piece : pieces)
    if (!piece.empty()) buffers.emplace_back(piece.data(), piece.size());
  if (framing_ == Framing::Chunked) buffers.push_back(buffer_of(kCrlf));
  auto result = co_await send(buffers);
  head_.clear();
  co_return result;
}

net::awaitable<Result<>> Session::flush() {
  if (broken_) co_return error_code(net::error::connection_aborted);
  if (head_.empty()) co_return Result<>{};
  std::array<net::const_buffer, 1> buffers{buffer_of(head_)};
  auto result = co_await send(buffers);
  head_.clear();
  co_return result;
}

void Session::add_trailers(std::string_view fields) {
  CHECK(begun_ && !finished_ && !has_trailers_);
  if (framing_ != Framing::Chunked) return;
  has_trailers_ = true;
  head_.append(kLastChunkSize).append(fields);
}

net::awaitable<Result<>> Session::finish() {
  CHECK(begun_ && !finished_);
  if (broken_) co_return error_code(net::error::connection_aborted);
  if (framing_ == Framing::Length && written_bytes_ < promised_bytes_) {
    abort();
    co_return error_code(net::error::connection_aborted);
  }
  finished_ = true;
  if (framing_ == Framing::Chunked) head_.append(has_trailers_ ? "" : kLastChunkSize).append(kCrlf);
  auto result = co_await flush();
  if (framing_ == Framing::Tunnel && !broken_) {
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
  }
  co_return result;
}

void Session::abort() noexcept {
  if (framing_ == Framing::UntilClose || framing_ == Framing::Tunnel) reset_at_close();
  broken_ = true;
  close();
}

// --- the socket ---

/// Sends `buffers` as far as the socket takes them at once, and leaves the rest in them.
void Session::send_at_once(std::span<net::const_buffer>& buffers, error_code& error) {
  while (!buffers.empty()) {
    std::size_t sent = socket_.write_some(buffers, error);
    if (error) return;
    burst_bytes_ += sent;
    while (!buffers.empty() && sent >= buffers.front().size()) {
      sent -= buffers.front().size();
      buffers = buffers.subspan(1);
    }
    if (sent > 0) buffers.front() += sent;
  }
}

net::awaitable<Result<>> Session::send(std::span<net::const_buffer> buffers) {
  for (;;) {
    error_code error;
    send_at_once(buffers, error);
    if (!error) break;
    if (would_block(error)) {
      burst_bytes_ = 0;
      writing_.begin(Wait::Write);
      const auto [wait_error] = co_await socket_.async_wait(tcp::socket::wait_write, use_result);
      error = wait_error;
      if (writing_.end(wait_error)) {
        reset_at_close();  // or the kernel would go on with what the client does not take
        error = net::error::timed_out;
      }
      if (!error) continue;
    }
    broken_ = true;
    co_return error;
  }
  if (burst_bytes_ >= kBurstBytes) {
    burst_bytes_ = 0;
    co_await net::post(net::use_awaitable);
  }
  co_return Result<>{};
}

/// Answers with a whole ready response and ends the connection so that the client can read it.
net::awaitable<void> Session::refuse(std::string_view response) {
  std::array<net::const_buffer, 1> buffers{buffer_of(response)};
  if (const auto sent = co_await send(buffers); sent.has_error()) co_return;
  co_await linger();
}

/// Closing a socket with unread bytes resets it, and the reset may overtake our last answer: so our
/// side ends first, and what comes is thrown away for a while.
net::awaitable<void> Session::linger() {
  error_code error;
  socket_.shutdown(tcp::socket::shutdown_send, error);
  reading_.begin(Wait::Linger);
  std::size_t dropped = 0;
  while (!error && dropped < kLingerBytesMax) {
    buffer_.clear();
    const auto [read_error, bytes] =
        co_await socket_.async_read_some(read_room(kBodyReadBytes), use_result);
    error = read_error;
    dropped += bytes;
  }
  reading_.kind = Wait::None;
}

void Session::reset_at_close() noexcept {
  error_code ignored;
  socket_.set_option(net::socket_base::linger(true, 0), ignored);
}

void Session::close() noexcept {
  error_code ignored;
  socket_.close(ignored);
}

// --- the set ---

SessionSet::SessionSet(const ProxySettings& settings, Handler& handler, FrontMetrics& metrics)
    : settings_(settings), handler_(handler), metrics_(metrics) {}

void SessionSet::add(tcp::socket socket) {
  metrics_.connections.add();
  if (count_ >= settings_.max_connections) {
    metrics_.connections_refused.add();
    return;
  }
  const auto executor = socket.get_executor();
  auto session = std::make_unique<Session>(std::move(socket), *this);
  auto life = session->run();
  auto at_end = [this, session = std::move(session)](const std::exception_ptr& failure) mutable {
    session.reset();
    ended(failure);
  };
  net::co_spawn(executor, std::move(life), std::move(at_end));
}

/// An exception costs the connection it came from, not the others.
void SessionSet::ended(const std::exception_ptr& failure) {
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    log_line(LogLevel::Error, "session failed", {{"what", error.what()}});
  }
  if (on_end_) on_end_();
}

void SessionSet::tick(SteadyTime now) {
  for (Session& session : sessions_) session.tick(now);
}

void SessionSet::begin_drain() {
  draining_ = true;
  for (Session& session : sessions_) session.begin_drain();
}

}  // namespace secondsight::proxy
