#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "cache/key.h"
#include "cache/object.h"
#include "cache/policy/range.h"

namespace secondsight::cache {

// A part of a representation that is kept in memory while its whole is not: an Object with the head
// of a 206 and the bytes its Content-Range names, under a key of its own. Never written to disk.
// RFC 9111 3.3, 3.4; RFC 9110 15.3.7.3.

/// The key of what is kept in parts of the object of that key.
CacheKey partial_key(const CacheKey& key, const admission::FingerprintSeed& seed);

/// What a part's Content-Range says, where the part may be kept: its complete length is known, it
/// has a strong entity tag, and (`body_bytes` given) it is as long as it says. Empty: it may not.
std::optional<policy::ContentRange> kept_range(const ObjectHead& head,
                                               std::optional<std::uint64_t> body_bytes);

/// The head of what two parts make together: a part again, or (`part` empty) the whole as a 200.
/// The newer fields replace the older.
std::shared_ptr<const ObjectHead> joined_head(const ObjectHead& older, const ObjectHead& newer,
                                              std::optional<policy::ContentRange> part);

/// Both parts as one. Null where they are not of one representation (the same strong entity tag and
/// complete length) or a gap lies between them. The result is a part, too, even of all bytes.
ObjectPtr combined(const Object& older, const Object& newer);

/// Whether a part holds all bytes.
bool is_complete(const Object& part);

/// The bytes [from, to) of a body that is held in pieces; whole pieces are shared.
std::vector<ChunkPtr> slice_of(const std::vector<ChunkPtr>& body, std::uint64_t from,
                               std::uint64_t to);

}  // namespace secondsight::cache
