#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "config/clock.h"
#include "config/metrics.h"
#include "config/settings.h"
#include "proxy/body.h"
#include "proxy/body_decoder.h"
#include "proxy/origin.h"
#include "proxy/origin_choice.h"
#include "proxy/origin_head_reader.h"
#include "proxy/origin_stream.h"
#include "proxy/response_sink.h"

namespace secondsight::proxy {

class Tunnel;

/// One worker's tunnels: whose turn it is among the origins, and the tick that times them.
class Tunnels {
 public:
  /// All must outlive it.
  Tunnels(net::io_context& io, const Settings& settings, const Clock& clock, Metrics& metrics);
  /// On the worker's thread, about ten times a second.
  void tick(SteadyTime now);

 private:
  friend class Tunnel;
  net::io_context& io_;
  const Settings& settings_;
  const Clock& clock_;
  OriginChoice choice_;
  std::unordered_set<Tunnel*> running_;
  Counter& opened_;
  Counter& closed_;
};

/// One request to an origin on a connection of its own, which may become a tunnel: open(), then
/// read_head() until a final head or a 101; after a final one next(), after a 101 carry(). Nothing
/// of it is shared or kept. One worker's thread. RFC 9110 7.8.
class Tunnel {
 public:
  explicit Tunnel(Tunnels& tunnels);
  ~Tunnel();
  Tunnel(const Tunnel&) = delete;
  Tunnel& operator=(const Tunnel&) = delete;

  /// Connects, to another origin where one cannot be reached, and sends `request_head`, once.
  net::awaitable<OriginError> open(std::string_view request_head);
  /// The next head: an interim one (100 is skipped), 101 or a final one.
  net::awaitable<OriginError> read_head(OriginHead& head);
  /// A final head's body, piece by piece, valid until the next call; none at its end. Errors: the
  /// connection's, or bad_message.
  net::awaitable<Result<std::span<const std::byte>>> next();
  /// Bytes both ways until both sides ended theirs, one broke, one took nothing of what waits for
  /// it for proxy.body_timeout (of the client's side its session takes care), or there was nothing
  /// to carry for proxy.idle_timeout. `sink` has sent the 101. The number of bytes sent to the
  /// client.
  net::awaitable<std::uint64_t> carry(BodySource& client, ResponseSink& sink);

  void tick(SteadyTime now);

 private:
  enum class Phase : std::uint8_t { Connect, Head, Body, Carry };
  enum class Framing : std::uint8_t { Decoded, UntilClose };

  net::awaitable<bool> fill();
  net::awaitable<void> carry_up(BodySource& client);
  net::awaitable<void> carry_down(ResponseSink& sink);
  net::awaitable<Result<>> send_up(std::span<const std::byte> bytes);
  void tick_sending_up(SteadyTime now);
  std::string_view unread() const noexcept;
  std::chrono::milliseconds patience() const noexcept;
  void enter(Phase phase) noexcept;
  void frame_body(const OriginHead& head);
  void cut() noexcept;

  Tunnels& tunnels_;
  OriginStream stream_;
  OriginHeadReader reader_;
  BodyDecoder decoder_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;  // of the bytes not yet used
  std::size_t end_ = 0;

  Phase phase_ = Phase::Connect;
  Framing framing_ = Framing::UntilClose;
  ResponseSink* sink_ = nullptr;  // while it carries
  std::uint64_t down_bytes_ = 0;
  std::optional<SteadyTime> deadline_;     // set by the first tick that sees the wait
  std::optional<SteadyTime> up_deadline_;  // likewise, while is_sending_up_
  std::size_t up_unsent_bytes_ = 0;        // when that clock started
  bool is_sending_up_ = false;
  bool is_sending_down_ = false;
  bool is_reading_ = false;
  bool is_late_ = false;
  bool down_ended_ = false;
  bool closed_for_client_ = false;  // the client ended its side, which TLS cannot pass on
};

}  // namespace secondsight::proxy
