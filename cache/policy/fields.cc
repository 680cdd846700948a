#include "cache/policy/fields.h"

#include <algorithm>

#include "config/check.h"

namespace secondsight::cache::policy {
namespace {

constexpr char to_lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
}

}  // namespace

bool equals_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return to_lower(x) == to_lower(y);
         });
}

void FieldBlock::add(std::string_view name, std::string_view value) {
  CHECK(text_.size() + name.size() + value.size() + 4 <= UINT32_MAX);
  const auto at = static_cast<std::uint32_t>(text_.size());
  const auto name_size = static_cast<std::uint32_t>(name.size());
  const auto value_size = static_cast<std::uint32_t>(value.size());
  text_.append(name).append(": ").append(value).append("\r\n");
  lines_.push_back({at, name_size, at + name_size + 2, value_size});
}

void FieldBlock::reserve(std::size_t text_bytes, std::size_t lines) {
  text_.reserve(text_bytes);
  lines_.reserve(lines);
}

void FieldBlock::clear() noexcept {
  text_.clear();
  lines_.clear();
}

FieldLine FieldBlock::operator[](std::size_t i) const noexcept {
  const Line& line = lines_[i];
  const std::string_view all = text_;
  return {all.substr(line.name_offset, line.name_size),
          all.substr(line.value_offset, line.value_size)};
}

std::optional<std::string_view> FieldBlock::find(std::string_view name) const noexcept {
  for (const FieldLine line : *this)
    if (equals_ignoring_case(line.name, name)) return line.value;
  return std::nullopt;
}

std::optional<std::string> FieldBlock::joined(std::string_view name) const {
  std::optional<std::string> all;
  for (const FieldLine line : *this) {
    if (!equals_ignoring_case(line.name, name)) continue;
    if (all) {
      all->append(", ").append(line.value);
    } else {
      all.emplace(line.value);
    }
  }
  return all;
}

std::optional<FieldBlock> FieldBlock::from_text(std::string_view text) {
  FieldBlock block;
  block.reserve(text.size(), 16);
  while (!text.empty()) {
    const auto end = text.find("\r\n");
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view line = text.substr(0, end);
    const auto colon = line.find(": ");
    if (colon == std::string_view::npos || colon == 0) return std::nullopt;
    block.add(line.substr(0, colon), line.substr(colon + 2));
    text.remove_prefix(end + 2);
  }
  return block;
}

}  // namespace secondsight::cache::policy
