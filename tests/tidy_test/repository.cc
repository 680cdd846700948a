#include "tests/tidy_test/repository.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

namespace secondsight::test {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kIgnored{".git", "build", ".cache",
                                                   "compile_commands.json"};

bool is_text(const fs::path& path) {
  constexpr std::array<std::string_view, 11> kExtensions{
      ".cc", ".h", ".md", ".cmake", ".txt", ".toml", ".json", ".sh", ".yml", ".py", ".in"};
  // Root files and scripts have no extension: Makefile, .clang-format, .ci/run.
  const std::string extension = path.extension().string();
  return extension.empty() ||
         std::find(kExtensions.begin(), kExtensions.end(), extension) != kExtensions.end();
}

std::string read_text(const fs::path& path) {
  std::ifstream file{path, std::ios::binary};
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

}  // namespace

Repository read_repository(const fs::path& root) {
  Repository repository;
  for (auto entry = fs::recursive_directory_iterator{root}; entry != fs::end(entry); ++entry) {
    const fs::path& path = entry->path();
    const std::string name = path.filename().string();
    if (entry.depth() == 0 && std::find(kIgnored.begin(), kIgnored.end(), name) != kIgnored.end()) {
      entry.disable_recursion_pending();
    } else if (entry->is_regular_file()) {
      repository.emplace(path.lexically_relative(root).generic_string(),
                         is_text(path) ? read_text(path) : std::string{});
    }
  }
  return repository;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool has_extension(std::string_view path, std::string_view extension) {
  return path.ends_with(extension);
}

std::string_view folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
}

std::string finding(std::string_view path, std::size_t line, std::string_view why) {
  std::string text{path};
  if (line != 0) text += ':' + std::to_string(line);
  text += ": ";
  text += why;
  return text;
}

}  // namespace secondsight::test
