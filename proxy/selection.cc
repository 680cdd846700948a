#include "proxy/selection.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <random>
#include <utility>
#include <variant>

#include "proxy/response.h"

namespace secondsight::proxy {
namespace {

namespace policy = cache::policy;

/// A delimiter no body can have been made to contain: 128 random bits for each response. RFC 2046
/// 5.1.1.
std::string make_boundary() {
  thread_local std::mt19937_64 random = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  constexpr int kHexDigits = 16;
  std::string boundary;
  for (int half = 0; half < 2; ++half) {
    std::array<char, kHexDigits> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), random(), 16).ptr;
    const std::string_view text(digits.data(), static_cast<std::size_t>(end - digits.data()));
    boundary.append(kHexDigits - text.size(), '0').append(text);
  }
  return boundary;
}

/// "Content-Range: bytes 0-499/1234\r\n"
std::string content_range(const policy::ByteRange& range, std::uint64_t complete_bytes) {
  return "Content-Range: bytes " + std::to_string(range.first) + "-" +
         std::to_string(range.end() - 1) + "/" + std::to_string(complete_bytes) + "\r\n";
}

policy::FieldBlock without(const policy::FieldBlock& fields,
                           std::initializer_list<std::string_view> names) {
  policy::FieldBlock kept;
  for (const auto line : fields) {
    const bool is_dropped = std::any_of(names.begin(), names.end(), [&](std::string_view name) {
      return policy::equals_ignoring_case(name, line.name);
    });
    if (!is_dropped) kept.add(line.name, line.value);
  }
  return kept;
}

/// Says nothing of the representation but its length, so that no cache keeps it in its place.
Selection select_none(const cache::ObjectHead& head, std::uint64_t complete_bytes) {
  Selection none;
  none.status = 416;
  none.status_line = "HTTP/1.1 416 Range Not Satisfiable\r\n";
  none.fields = "Cache-Control: no-store\r\nContent-Range: bytes */" +
                std::to_string(complete_bytes) + "\r\n";
  none.trimmed.emplace();
  for (const auto line : head.fields) {
    if (policy::equals_ignoring_case(line.name, "Date") ||
        policy::equals_ignoring_case(line.name, "Via"))
      none.trimmed->add(line.name, line.value);
  }
  none.content_length = 0;
  return none;
}

/// RFC 9110 15.3.7.2, 14.6.
void make_multipart(Selection& selection, const cache::ObjectHead& head,
                    std::uint64_t complete_bytes) {
  const std::string boundary = make_boundary();
  const auto type = head.fields.find("Content-Type");
  std::uint64_t bytes = 0;
  for (const policy::ByteRange& range : selection.ranges) {
    std::string preface = "\r\n--" + boundary + "\r\n";
    if (type) preface.append("Content-Type: ").append(*type).append("\r\n");
    preface.append(content_range(range, complete_bytes)).append("\r\n");
    bytes += preface.size() + range.size;
    selection.prefaces.push_back(std::move(preface));
  }
  selection.closing = "\r\n--" + boundary + "--\r\n";
  selection.content_length = bytes + selection.closing.size();
  selection.fields = "Content-Type: multipart/byteranges; boundary=" + boundary + "\r\n";
  selection.trimmed = without(head.fields, {"Content-Type"});
}

}  // namespace

bool Selection::is_ascending() const noexcept {
  return std::is_sorted(ranges.begin(), ranges.end(),
                        [](const auto& a, const auto& b) { return a.first < b.first; });
}

Selection select_whole(const cache::ObjectHead& head, std::optional<std::uint64_t> complete_bytes) {
  Selection whole;
  whole.status = head.status;
  whole.status_line = status_line(head.status, head.reason);
  const auto bytes = complete_bytes.value_or(std::numeric_limits<std::uint64_t>::max());
  if (bytes > 0) whole.ranges.push_back({0, bytes});
  whole.content_length = complete_bytes;
  return whole;
}

Selection select_parts(const policy::FieldBlock& request, const cache::ObjectHead& head,
                       std::uint64_t complete_bytes) {
  auto wanted = policy::requested_ranges(request, head.facts, complete_bytes);
  if (std::holds_alternative<policy::WholeBody>(wanted)) return select_whole(head, complete_bytes);
  if (std::holds_alternative<policy::NotSatisfiable>(wanted))
    return select_none(head, complete_bytes);
  Selection parts;
  parts.status = 206;
  parts.status_line = "HTTP/1.1 206 Partial Content\r\n";
  parts.ranges = std::move(std::get<policy::ByteRanges>(wanted));
  if (parts.ranges.size() > 1) {
    make_multipart(parts, head, complete_bytes);
  } else {
    parts.fields = content_range(parts.ranges.front(), complete_bytes);
    parts.content_length = parts.ranges.front().size;
  }
  return parts;
}

}  // namespace secondsight::proxy
