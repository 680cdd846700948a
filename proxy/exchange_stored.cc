// The half of Exchange that answers from the cache: reading a stored response, choosing what of it
// the request gets, sending it, and going on from the origin where its bytes are lost.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cache/policy/freshness.h"
#include "cache/policy/validation.h"
#include "proxy/disk_pool.h"
#include "proxy/exchange.h"
#include "proxy/exchange_rules.h"
#include "proxy/rest_of_body.h"

namespace secondsight::proxy {
namespace {

namespace policy = cache::policy;
using cache::CacheKey;
using cache::Detail;
using cache::log::ReadMode;

/// Stored bodies up to this size are read from disk in one piece, and then kept in memory.
constexpr std::uint64_t kWholeReadBytesMax = 256U << 10;

bool wants_blocking_read(const boost::system::error_code& error) {
  return error == boost::system::errc::resource_unavailable_try_again;
}

}  // namespace

/// Leaves `found` empty when the object cannot be read: a miss.
net::awaitable<void> Exchange::read_from_disk(Found& found, const cache::Index::Entry& entry) {
  auto opened = services_.cache.open_object(found.key, entry, ReadMode::PageCacheOnly);
  if (!opened && wants_blocking_read(opened.error())) {
    auto job = [this, &found, entry] {
      return services_.cache.open_object(found.key, entry, ReadMode::Blocking);
    };
    auto answer = co_await services_.disk.run(std::move(job));
    if (!answer) co_return;  // the disk threads are behind: the origin is asked instead
    opened = std::move(*answer);
  }
  if (!opened) co_return;
  found.disk.emplace(std::move(*opened));
  const std::uint64_t body_bytes = found.disk->body_bytes;
  if (body_bytes > kWholeReadBytesMax) {
    if (facts_.method == policy::Method::Get) services_.cache.note_disk_hit(found.key);
    co_return;
  }
  std::vector<cache::ChunkPtr> body;
  if (body_bytes > 0) {
    auto chunk = std::make_shared<cache::Chunk>(body_bytes);
    const std::span<std::byte> out(*chunk);
    if (const auto read = co_await read_slice(found, 0, out); !read) {
      found.disk.reset();
      co_return;
    }
    body.push_back(std::move(chunk));
  }
  auto object =
      std::make_shared<cache::Object>(found.key, found.disk->head, std::move(body), body_bytes);
  object->is_vary_marker = found.disk->is_vary_marker;
  object->on_disk.store(true, std::memory_order_relaxed);
  services_.cache.keep(object, cache::Newcomer::SeenBefore);
  if (!object->is_vary_marker && facts_.method == policy::Method::Get)
    services_.cache.note_disk_hit(found.key);
  found.object = std::move(object);
  found.from_disk = true;
}

/// An error means the object is gone, and was noted as such.
net::awaitable<Result<>> Exchange::read_slice(Found& found, std::uint64_t offset,
                                              std::span<std::byte> out) {
  cache::log::ObjectReader& reader = *found.disk->body;
  auto read = reader.read_body(offset, out, ReadMode::PageCacheOnly);
  if (!read && wants_blocking_read(read.error())) {
    auto job = [&reader, offset, out] { return reader.read_body(offset, out, ReadMode::Blocking); };
    const auto answer = co_await services_.disk.run(std::move(job));
    if (!answer) co_return read;  // the disk threads are behind: a miss, not damage
    read = *answer;
  }
  if (!read) services_.cache.note_unreadable(found.key, found.disk->entry, read.error());
  co_return read;
}

/// Answers with the stored body under `head` (its own, or the freshened one). No: it could not be
/// read.
net::awaitable<Exchange::Served> Exchange::serve(Found& found, CacheStatus status, Outcome outcome,
                                                 std::shared_ptr<const cache::ObjectHead> head) {
  status.ttl = time_to_live(*head, now_);
  const bool in_memory = found.object && !found.from_disk;
  if (status.detail.empty()) status.detail = to_string(in_memory ? Detail::Memory : Detail::Disk);
  const bool is_current = found.object && found.object->head == head;
  if (in_memory && is_current && facts_.method == policy::Method::Get &&
      services_.cache.promote(found.object)) {
    status.stored = true;
    if (found.marker) services_.cache.persist_marker(found.marker);
  }

  std::string patched;
  append_age(patched, policy::current_age(head->facts, head->times, now_));
  detail_ = status.detail;
  append_cache_status(patched, status);

  if (head->status == 200 && policy::is_not_modified(request_.fields, head->facts, head->times)) {
    const policy::FieldBlock fields = policy::not_modified_fields(head->fields);
    const ResponseSink::Head not_modified{.status = 304,
                                          .status_line = "HTTP/1.1 304 Not Modified\r\n",
                                          .ready = fields.text(),
                                          .patched = patched,
                                          .content_length = std::nullopt,
                                          .has_body = false};
    begin(not_modified);
    co_await sink_.finish();
    finish(outcome);
    co_return Served::Yes;
  }

  const std::uint64_t complete_bytes = found.body_bytes();
  policy::ByteRange range{0, complete_bytes};
  int code = head->status;
  std::string line = status_line(code, head->reason);
  if (code == 200 && facts_.has_range && facts_.method == policy::Method::Get) {
    const auto wanted = policy::requested_range(request_.fields, head->facts, complete_bytes);
    const std::string complete = std::to_string(complete_bytes);
    if (const auto* part = std::get_if<policy::ByteRange>(&wanted)) {
      range = *part;
      code = 206;
      line = "HTTP/1.1 206 Partial Content\r\n";
      patched.append("Content-Range: bytes ")
          .append(std::to_string(range.first) + "-" + std::to_string(range.first + range.size - 1))
          .append("/" + complete + "\r\n");
    } else if (std::holds_alternative<policy::NotSatisfiable>(wanted)) {
      range.size = 0;
      code = 416;
      line = "HTTP/1.1 416 Range Not Satisfiable\r\n";
      patched.append("Content-Range: bytes */" + complete + "\r\n");
    }
  }
  const ResponseSink::Head response{.status = code,
                                    .status_line = line,
                                    .ready = head->fields.text(),
                                    .patched = patched,
                                    .content_length = range.size,
                                    .has_body = has_response_body(request_, code)};
  if (found.object || !response.has_body) {
    begin(response);
    if (response.has_body) {
      co_await send_memory_body(*found.object, range);
    } else {
      co_await sink_.finish();
    }
  } else if (co_await send_disk_body(found, response, range) == Served::No) {
    co_return Served::No;
  }
  finish(outcome);
  co_return Served::Yes;
}

net::awaitable<void> Exchange::send_memory_body(const cache::Object& object,
                                                policy::ByteRange range) {
  constexpr std::size_t kPieces = 32;
  std::array<std::span<const std::byte>, kPieces> pieces;
  std::size_t count = 0;
  std::uint64_t first = 0;
  for (const cache::ChunkPtr& chunk : object.body) {
    const std::uint64_t from = std::max(first, range.first);
    const std::uint64_t to = std::min(first + chunk->size(), range.first + range.size);
    if (from < to) {
      pieces[count++] = std::span(*chunk).subspan(from - first, to - from);
    }
    first += chunk->size();
    if (count == kPieces) {
      const std::span<const std::span<const std::byte>> batch(pieces.data(), count);
      if (const auto sent = co_await sink_.write(batch); !sent) co_return;
      count = 0;
    }
  }
  if (count > 0) {
    const std::span<const std::span<const std::byte>> batch(pieces.data(), count);
    if (const auto sent = co_await sink_.write(batch); !sent) co_return;
  }
  note_sent(range.size);
  co_await sink_.finish();
}

/// No: not even the first slice could be read, nothing was sent. What is lost later is asked of the
/// origin, or the response is cut: a wrong byte is never sent.
net::awaitable<Exchange::Served> Exchange::send_disk_body(Found& found,
                                                          const ResponseSink::Head& head,
                                                          policy::ByteRange range) {
  std::vector<std::byte> slice(std::min<std::uint64_t>(range.size, kSliceBytes));
  std::uint64_t offset = range.first;
  std::uint64_t left_bytes = range.size;
  bool begun = false;
  while (left_bytes > 0) {
    const auto size = std::min<std::uint64_t>(left_bytes, slice.size());
    const std::span<std::byte> out = std::span(slice).first(size);
    if (const auto read = co_await read_slice(found, offset, out); !read) {
      if (!begun) co_return Served::No;
      if (co_await send_rest(*found.head(), offset, range.first + range.size)) break;
      services_.counters.cut_bodies.add();
      sink_.abort();
      co_return Served::Yes;
    }
    if (!begun) {
      begin(head);
      begun = true;
    }
    const std::array<std::span<const std::byte>, 1> pieces{out};
    const std::span<const std::span<const std::byte>> batch(pieces);
    if (const auto sent = co_await sink_.write(batch); !sent) co_return Served::Yes;
    note_sent(size);
    offset += size;
    left_bytes -= size;
  }
  if (!begun) begin(head);
  co_await sink_.finish();
  co_return Served::Yes;
}

net::awaitable<bool> Exchange::send_rest(const cache::ObjectHead& head, std::uint64_t first,
                                         std::optional<std::uint64_t> end) {
  const CacheKey key =
      CacheKey::primary("http", request_.host, request_.target, services_.cache.seed());
  OriginRequest request{.method = request_.method,
                        .target = request_.target,
                        .fields = forwarded_fields(request_),
                        .body = nullptr,
                        .content_length = std::nullopt};
  RestOfBody rest(services_, key, std::move(request), request_.fields, head, first, end);
  if (!co_await rest.open()) co_return false;
  services_.counters.continued_bodies.add();
  std::uint64_t left_bytes = end ? *end - first : UINT64_MAX;
  while (left_bytes > 0) {
    const auto pieces = co_await rest.next();
    if (!pieces) co_return false;
    if (pieces->empty()) break;
    if (const auto sent = co_await sink_.write(*pieces); !sent) co_return false;
    for (const auto& piece : *pieces) {
      note_sent(piece.size());
      left_bytes -= std::min<std::uint64_t>(left_bytes, piece.size());
    }
  }
  co_return true;
}

/// A stale response instead of an error, where it may be. RFC 5861 4, RFC 9111 4.2.4. `failure`:
/// why no response came; empty: one came, its status is in `status`.
net::awaitable<Exchange::Served> Exchange::fall_back(Found& found, CacheStatus status,
                                                     std::string_view failure) {
  auto head = found.head();
  status.detail = failure;
  if (!policy::may_serve_on_error(facts_, head->facts, head->times, kHeuristic, now_))
    co_return Served::No;
  co_return co_await serve(found, status, Outcome::StaleHit, std::move(head));
}

}  // namespace secondsight::proxy
