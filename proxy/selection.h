#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/object.h"
#include "cache/policy/range.h"

namespace secondsight::proxy {

/// What of a whole representation a request gets: all of it, one part, several parts as
/// multipart/byteranges, or none (416). Pure. RFC 9110 14, 15.3.7, 15.5.17.
struct Selection {
  int status = 200;
  std::string status_line;
  /// To be sent one after the other, each behind its preface. The whole of unknown length is one
  /// range without an end.
  cache::policy::ByteRanges ranges;
  std::vector<std::string> prefaces;  // empty, or one for each range
  std::string closing;                // after the last range
  std::string fields;                 // lines to add to the head
  /// In place of the head's own fields, some of which would not be true.
  std::optional<cache::policy::FieldBlock> trimmed;
  std::optional<std::uint64_t> content_length;  // of the response

  std::string_view preface(std::size_t i) const noexcept {
    return prefaces.empty() ? std::string_view{} : prefaces[i];
  }
  std::string_view ready(const cache::ObjectHead& head) const noexcept {
    return trimmed ? trimmed->text() : head.fields.text();
  }
  /// Whether the ranges can be sent while the body streams by.
  bool is_ascending() const noexcept;
};

/// `complete_bytes` empty: not known yet.
Selection select_whole(const cache::ObjectHead& head, std::optional<std::uint64_t> complete_bytes);
/// What the request's Range and If-Range ask for of a 200.
Selection select_parts(const cache::policy::FieldBlock& request, const cache::ObjectHead& head,
                       std::uint64_t complete_bytes);

}  // namespace secondsight::proxy
