#include "proxy/tunnel.h"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include <boost/asio/co_spawn.hpp>

#include "proxy/signal.h"

namespace secondsight::proxy {
namespace {

using cache::policy::equals_ignoring_case;

/// Bytes under way in each direction; what the client sends waits in its session's buffer.
constexpr std::size_t kBufferBytes = 16U << 10;

}  // namespace

// ---------------------------------------------------------------- a worker's

Tunnels::Tunnels(net::io_context& io, const Settings& settings, const Clock& clock,
                 Metrics& metrics)
    : io_(io),
      settings_(settings),
      clock_(clock),
      choice_(settings.origin.urls.size()),
      opened_(metrics.counter("secondsight_tunnels_total",
                              "Connections that an origin agreed to upgrade.")),
      closed_(metrics.counter("secondsight_tunnels_closed_total", "Those of them that ended.")) {}

void Tunnels::tick(SteadyTime now) {
  // One that is cut here ends later, in its own coroutine.
  for (Tunnel* tunnel : running_) tunnel->tick(now);
}

// ---------------------------------------------------------------- one of them

Tunnel::Tunnel(Tunnels& tunnels) : tunnels_(tunnels), stream_(tunnels.io_), buffer_(kBufferBytes) {
  tunnels_.running_.insert(this);
}

Tunnel::~Tunnel() {
  tunnels_.running_.erase(this);
}

std::chrono::milliseconds Tunnel::patience() const noexcept {
  const Settings& settings = tunnels_.settings_;
  switch (phase_) {
    case Phase::Connect:
      return settings.origin.connect_timeout;
    case Phase::Head:
      return settings.origin.response_timeout;
    case Phase::Body:
      return settings.origin.idle_timeout;
    case Phase::Carry:
      break;
  }
  return settings.proxy.idle_timeout;
}

void Tunnel::enter(Phase phase) noexcept {
  phase_ = phase;
  deadline_.reset();
}

void Tunnel::tick(SteadyTime now) {
  if (is_sending_up_) tick_sending_up(now);
  // Nothing is waited for from a side that is slow to take what it gets: that has another clock.
  const bool is_client_slow = is_sending_down_ || (phase_ == Phase::Body && !is_reading_);
  if (is_sending_up_ || is_client_slow) return deadline_.reset();
  if (!deadline_) {
    deadline_ = now + patience();
  } else if (now >= *deadline_) {
    is_late_ = true;
    cut();
  }
}

void Tunnel::tick_sending_up(SteadyTime now) {
  const bool is_overdue = up_deadline_ && now >= *up_deadline_;
  if (up_deadline_ && !is_overdue) return;
  const std::size_t unsent = stream_.unsent_bytes();
  if (is_overdue && unsent >= up_unsent_bytes_) return cut();
  up_deadline_ = now + tunnels_.settings_.proxy.body_timeout;
  up_unsent_bytes_ = unsent;
}

/// Whatever is under way fails.
void Tunnel::cut() noexcept {
  stream_.close();
  if (sink_ != nullptr) sink_->abort();
}

std::string_view Tunnel::unread() const noexcept {
  return {reinterpret_cast<const char*>(buffer_.data()) + begin_, end_ - begin_};
}

net::awaitable<OriginError> Tunnel::open(std::string_view request_head) {
  const auto& urls = tunnels_.settings_.origin.urls;
  std::vector<bool> tried(urls.size());
  bool is_late = false;
  for (;;) {
    const auto origin = tunnels_.choice_.pick(tried, tunnels_.clock_.steady());
    if (!origin) co_return is_late ? OriginError::ConnectTimeout : OriginError::Unreachable;
    tried[*origin] = true;
    enter(Phase::Connect);
    if (const auto connected = co_await stream_.connect(urls[*origin])) {
      tunnels_.choice_.reached(*origin);
      break;
    }
    tunnels_.choice_.failed(*origin, tunnels_.clock_.steady());
    is_late = std::exchange(is_late_, false);
  }
  enter(Phase::Head);
  reader_.reset(tunnels_.settings_.origin.max_header_bytes, OriginHeadReader::Http2::Refused,
                OriginHeadReader::Switching::Accepted);
  const auto sent = co_await stream_.write(std::as_bytes(std::span(request_head)));
  if (sent) co_return OriginError::None;
  co_return is_late_ ? OriginError::ResponseTimeout : OriginError::Disconnected;
}

/// Reads more behind what is unread. False: the origin ended or broke, or no room is left.
net::awaitable<bool> Tunnel::fill() {
  if (begin_ > 0) {
    std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_),
              buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin());
    end_ -= std::exchange(begin_, 0);
  }
  const std::size_t bytes_max = tunnels_.settings_.origin.max_header_bytes;
  if (end_ == buffer_.size()) buffer_.resize(std::max(end_, bytes_max));
  if (end_ == buffer_.size()) co_return false;
  is_reading_ = true;
  const auto got = co_await stream_.read_some(std::span(buffer_).subspan(end_));
  is_reading_ = false;
  if (!got || *got == 0) co_return false;
  end_ += *got;
  co_return true;
}

net::awaitable<OriginError> Tunnel::read_head(OriginHead& head) {
  for (;;) {
    const std::string_view text = unread();
    const auto newline = text.find('\n');
    if (newline == std::string_view::npos) {
      if (text.size() >= tunnels_.settings_.origin.max_header_bytes)
        co_return OriginError::Malformed;
      if (co_await fill()) continue;
      co_return is_late_ ? OriginError::ResponseTimeout : OriginError::Disconnected;
    }
    const auto step = reader_.take(text.substr(0, newline + 1));
    begin_ += newline + 1;
    if (step == OriginHeadReader::Step::Malformed) co_return OriginError::Malformed;
    if (step == OriginHeadReader::Step::More) continue;
    head = reader_.release();
    if (head.status == 100) continue;
    if (step == OriginHeadReader::Step::Complete) frame_body(head);
    co_return OriginError::None;
  }
}

void Tunnel::frame_body(const OriginHead& head) {
  enter(Phase::Body);
  if (head.content_length) {
    framing_ = Framing::Decoded;
    return decoder_.start_length(*head.content_length);
  }
  const auto coding = head.fields.find("Transfer-Encoding");
  if (!coding || !equals_ignoring_case(*coding, "chunked")) return;
  framing_ = Framing::Decoded;
  decoder_.start_chunked(UINT64_MAX, tunnels_.settings_.origin.max_header_bytes);
}

net::awaitable<Result<std::span<const std::byte>>> Tunnel::next() {
  using Bytes = std::span<const std::byte>;
  for (;;) {
    deadline_.reset();
    const auto bytes = std::as_bytes(std::span(unread()));
    if (framing_ == Framing::Decoded) {
      const BodyDecoder::Step step = decoder_.next(bytes);
      begin_ += step.taken;
      if (step.outcome == BodyDecoder::Outcome::Data) co_return step.data;
      if (step.outcome == BodyDecoder::Outcome::End) co_return Bytes{};
      if (step.outcome == BodyDecoder::Outcome::Failed)
        co_return make_error_code(boost::system::errc::bad_message);
    } else if (!bytes.empty()) {
      begin_ = end_;
      co_return bytes;
    }
    begin_ = end_ = 0;  // all of it was taken
    is_reading_ = true;
    const auto got = co_await stream_.read_some(std::span(buffer_).subspan(end_));
    is_reading_ = false;
    if (!got) co_return got.error();
    if (*got == 0 && framing_ == Framing::UntilClose) co_return Bytes{};
    if (*got == 0) co_return make_error_code(boost::system::errc::connection_aborted);
    end_ += *got;
  }
}

// ---------------------------------------------------------------- both ways

net::awaitable<std::uint64_t> Tunnel::carry(BodySource& client, ResponseSink& sink) {
  enter(Phase::Carry);
  sink_ = &sink;
  tunnels_.opened_.add();
  // Its end is awaited below, so it outlives nothing that it uses.
  const auto up_ended = std::make_shared<Signal>(tunnels_.io_);
  bool is_up_over = false;
  auto at_end = [this, up_ended, &is_up_over](const std::exception_ptr& failure) {
    if (failure) cut();
    is_up_over = true;
    up_ended->notify();
  };
  net::co_spawn(tunnels_.io_, carry_up(client), std::move(at_end));
  std::exception_ptr failure;
  try {
    co_await carry_down(sink);
  } catch (...) {
    failure = std::current_exception();
    cut();
  }
  while (!is_up_over) co_await up_ended->wait();
  sink_ = nullptr;
  stream_.close();
  tunnels_.closed_.add();
  if (failure) std::rethrow_exception(failure);
  co_return down_bytes_;
}

net::awaitable<void> Tunnel::carry_up(BodySource& client) {
  for (;;) {
    const auto piece = co_await client.next();
    if (!piece) co_return cut();
    deadline_.reset();
    if (piece->empty()) {
      closed_for_client_ = !stream_.end_sending();
      if (closed_for_client_) stream_.close();
      co_return;
    }
    if (const auto sent = co_await send_up(*piece); !sent) {
      if (!down_ended_) cut();  // or the client has all it will get: it is not to lose that
      co_return;
    }
    deadline_.reset();
  }
}

net::awaitable<Result<>> Tunnel::send_up(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    up_deadline_.reset();
    is_sending_up_ = true;
    const auto taken = co_await stream_.write_some(bytes);
    is_sending_up_ = false;
    if (!taken) co_return taken.error();
    bytes = bytes.subspan(*taken);
  }
  co_return Result<>{};
}

net::awaitable<void> Tunnel::carry_down(ResponseSink& sink) {
  for (;;) {
    const std::array<std::span<const std::byte>, 1> pieces{std::as_bytes(std::span(unread()))};
    const std::size_t bytes = pieces[0].size();
    if (bytes > 0) {
      const std::span<const std::span<const std::byte>> batch(pieces);
      is_sending_down_ = true;
      const auto sent = co_await sink.write(batch);
      is_sending_down_ = false;
      if (!sent) co_return cut();
      deadline_.reset();
      down_bytes_ += bytes;
    }
    begin_ = end_ = 0;
    const auto got = co_await stream_.read_some(buffer_);
    deadline_.reset();
    // Without TLS's own word for it is an end all the same: upgraded protocols have their own.
    if (!got && got.error() != net::error::eof && !closed_for_client_) co_return cut();
    if (!got || *got == 0) {
      down_ended_ = true;
      (void)co_await sink.finish();
      co_return;
    }
    end_ = *got;
  }
}

}  // namespace secondsight::proxy
