#include "proxy/machine_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>
#include <unistd.h>

namespace secondsight::proxy {

std::optional<std::uint64_t> read_memory_max(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  std::uint64_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return bytes;
}

std::uint64_t machine_memory_bytes() {
  const auto pages = static_cast<std::uint64_t>(std::max(::sysconf(_SC_PHYS_PAGES), 0L));
  const auto page_bytes = static_cast<std::uint64_t>(std::max(::sysconf(_SC_PAGESIZE), 0L));
  const std::uint64_t machine = pages * page_bytes;
  // A container sees its own group as the root. Outside of one the root has no such file.
  std::ifstream file("/sys/fs/cgroup/memory.max");
  std::string text;
  if (!std::getline(file, text)) return machine;
  return std::min(machine, read_memory_max(text).value_or(machine));
}

}  // namespace secondsight::proxy
