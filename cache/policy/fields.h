#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace secondsight::cache::policy {

/// One header field line; the views last as long as the block they came from.
struct FieldLine {
  std::string_view name;   // as received, compare without case
  std::string_view value;  // without surrounding whitespace
};

/// Equal without regard to ASCII case.
bool equals_ignoring_case(std::string_view a, std::string_view b) noexcept;

/// The header fields of one message, flat: one text ("Name: value\r\n" per line, no final empty
/// line) and the places of its names and values. Ready to be sent as it is. At most 4 GiB - 1 of
/// text.
class FieldBlock {
 public:
  void add(std::string_view name, std::string_view value);
  void reserve(std::size_t text_bytes, std::size_t lines);
  void clear() noexcept;

  std::size_t count() const noexcept { return lines_.size(); }
  FieldLine operator[](std::size_t i) const noexcept;
  /// The first field of that name.
  std::optional<std::string_view> find(std::string_view name) const noexcept;
  /// Whether any field has that name.
  bool contains(std::string_view name) const noexcept { return find(name).has_value(); }
  /// All values of that name joined by ", " (RFC 9110 5.3); empty when there is none.
  std::optional<std::string> joined(std::string_view name) const;

  /// Heap bytes it holds.
  std::size_t memory_bytes() const noexcept {
    return text_.capacity() + lines_.capacity() * sizeof(Line);
  }

  /// "Name: value\r\n" for every line.
  std::string_view text() const noexcept { return text_; }

  class Iterator {
   public:
    using value_type = FieldLine;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    Iterator(const FieldBlock* block, std::size_t i) : block_(block), i_(i) {}
    FieldLine operator*() const noexcept { return (*block_)[i_]; }
    Iterator& operator++() noexcept {
      ++i_;
      return *this;
    }
    Iterator operator++(int) noexcept {
      auto old = *this;
      ++i_;
      return old;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) noexcept { return a.i_ == b.i_; }

   private:
    const FieldBlock* block_ = nullptr;
    std::size_t i_ = 0;
  };
  Iterator begin() const noexcept { return {this, 0}; }
  Iterator end() const noexcept { return {this, lines_.size()}; }

  /// Reads text() back. Empty when the text is not of that form (a damaged record).
  static std::optional<FieldBlock> from_text(std::string_view text);

 private:
  struct Line {
    std::uint32_t name_offset, name_size, value_offset, value_size;
  };
  std::string text_;
  std::vector<Line> lines_;
};

}  // namespace secondsight::cache::policy
