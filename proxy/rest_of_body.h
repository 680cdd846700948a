#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "cache/object.h"
#include "proxy/flight.h"
#include "proxy/services.h"

namespace secondsight::proxy {

/// The rest of a body that a client was promised from the cache, and that is gone there: its
/// segment was reclaimed under a slow reader, or a read failed. Asked of the origin as a range
/// under the stored strong entity tag (If-Range, RFC 9110 13.1.5), so that the client never gets
/// bytes of another version. One worker's thread.
class RestOfBody {
 public:
  /// Body bytes [first, end) of what `head` describes; `end` empty: to the body's end. `request`:
  /// how the client's own request would be forwarded. `fields` outlive this.
  RestOfBody(WorkerServices& services, const cache::CacheKey& key, OriginRequest request,
             const cache::policy::FieldBlock& fields, const cache::ObjectHead& head,
             std::uint64_t first, std::optional<std::uint64_t> end);

  /// False: there is no strong validator, the origin has another version, or it fails.
  net::awaitable<bool> open();
  /// As FlightReader::next(), after open().
  net::awaitable<Result<std::span<const std::span<const std::byte>>>> next();

 private:
  bool is_same_part(const cache::ObjectHead& answer);

  WorkerServices& services_;
  const cache::CacheKey key_;
  OriginRequest request_;
  const cache::policy::FieldBlock& fields_;
  const std::string etag_;
  const std::uint64_t first_;
  const std::optional<std::uint64_t> end_;
  std::uint64_t skip_bytes_ = 0;  // the origin sent the whole instead
  FlightReader reader_;
  std::vector<std::span<const std::byte>> pieces_;
};

}  // namespace secondsight::proxy
