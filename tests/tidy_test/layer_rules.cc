#include "tests/tidy_test/layer_rules.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <sstream>

namespace secondsight::test {
namespace {

struct Layer {
  std::string_view folder;
  std::vector<std::string_view> sees;  // besides itself
};

// Inner folders stand before the ones that hold them.
const std::array<Layer, 8>& layers() {
  static const std::array<Layer, 8> kLayers{{
      {"config", {}},
      {"admission", {"config"}},
      {"cache/policy", {"config"}},
      {"cache/log", {"config", "admission", "cache/policy"}},
      {"cache", {"config", "admission", "cache/policy", "cache/log"}},
      {"proxy", {"config", "admission", "cache/policy", "cache/log", "cache"}},
      {"loadtest", {"config", "admission", "cache/policy", "cache/log", "cache"}},
      {"tests", {"config", "admission", "cache/policy", "cache/log", "cache", "proxy", "loadtest"}},
  }};
  return kLayers;
}

bool is_inside(std::string_view path, std::string_view folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

const Layer* layer_of(std::string_view path) {
  for (const Layer& layer : layers()) {
    if (is_inside(path, layer.folder)) return &layer;
  }
  return nullptr;
}

bool is_source(std::string_view path) {
  return has_extension(path, ".cc") || has_extension(path, ".h");
}

struct Include {
  std::string_view path;
  bool in_quotes = false;
};

std::optional<Include> include_of(std::string_view line) {
  constexpr std::string_view kDirective = "#include";
  if (!line.starts_with(kDirective)) return std::nullopt;
  line.remove_prefix(kDirective.size());
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  if (line.empty() || (line.front() != '"' && line.front() != '<')) return std::nullopt;
  const bool in_quotes = line.front() == '"';
  line.remove_prefix(1);
  return Include{line.substr(0, line.find(in_quotes ? '"' : '>')), in_quotes};
}

/// Calls `check(path, line number, include)` for each include of each source.
template <class Check>
void for_each_include(const Repository& repository, Check check) {
  for (const auto& [path, text] : repository) {
    if (!is_source(path)) continue;
    std::size_t number = 0;
    for (const std::string_view line : lines_of(text)) {
      ++number;
      if (const auto include = include_of(line)) check(path, number, *include);
    }
  }
}

/// The words of a CMake file, comments left out.
std::set<std::string, std::less<>> cmake_words(std::string_view text) {
  std::set<std::string, std::less<>> words;
  for (std::string_view line : lines_of(text)) {
    std::string plain{line.substr(0, line.find('#'))};
    std::replace_if(
        plain.begin(), plain.end(), [](char c) { return c == '(' || c == ')'; }, ' ');
    std::istringstream stream{plain};
    for (std::string word; stream >> word;) words.insert(word);
  }
  return words;
}

}  // namespace

Findings includes_against_the_layers(const Repository& repository) {
  Findings findings;
  for_each_include(repository, [&](const std::string& path, std::size_t line, Include include) {
    const Layer* from = layer_of(path);
    const Layer* to = layer_of(include.path);
    const std::string shown{include.path};
    if (from == nullptr) {
      findings.push_back(finding(path, line, "is in no layer"));
    } else if (!include.in_quotes && to != nullptr) {
      findings.push_back(finding(path, line, "include \"" + shown + "\" in quotes"));
    } else if (include.in_quotes && repository.count(shown) == 0) {
      findings.push_back(finding(path, line, "no file " + shown + " from the root"));
    } else if (to != nullptr && to != from &&
               std::find(from->sees.begin(), from->sees.end(), to->folder) == from->sees.end()) {
      findings.push_back(finding(path, line,
                                 std::string{from->folder} + " must not see " +
                                     std::string{to->folder} + ", includes " + shown));
    }
  });
  return findings;
}

Findings beast_outside_the_rim(const Repository& repository) {
  constexpr std::array<std::string_view, 7> kRim{
      "proxy/session", "proxy/request", "proxy/exchange", "proxy/response",
      "proxy/admin",   "loadtest/",     "tests/"};
  Findings findings;
  for_each_include(repository, [&](const std::string& path, std::size_t line, Include include) {
    if (!include.path.starts_with("boost/beast")) return;
    const bool at_the_rim = std::any_of(
        kRim.begin(), kRim.end(), [&](std::string_view start) { return path.starts_with(start); });
    if (!at_the_rim) findings.push_back(finding(path, line, "Beast belongs to the rim"));
  });
  return findings;
}

Findings unknown_folders(const Repository& repository) {
  const std::set<std::string_view> known{".ci",       ".githooks", "admission", "cache",
                                         "cmake",     "config",    "docs",      "loadtest",
                                         "packaging", "proxy",     "tests"};
  const std::set<std::string_view> drawers{"util", "utils", "common", "misc", "helpers"};
  Findings findings;
  std::set<std::string_view> seen;
  for (const auto& [path, text] : repository) {
    std::string_view folder = folder_of(path);
    if (folder.empty() || !seen.insert(folder).second) continue;
    if (known.count(folder.substr(0, folder.find('/'))) == 0) {
      findings.push_back(finding(folder, 0, "is no folder of the layout"));
    }
    for (std::string_view rest = folder; !rest.empty();) {
      const std::size_t end = std::min(rest.find('/'), rest.size());
      if (drawers.count(rest.substr(0, end)) != 0) {
        findings.push_back(finding(folder, 0, "name it after its idea"));
      }
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return findings;
}

Findings sources_not_in_cmake(const Repository& repository) {
  Findings findings;
  for (const auto& [path, text] : repository) {
    const bool is_test = is_inside(path, "tests");
    // A test's header is compiled with its test; a layer's header is checked on its own.
    if (!has_extension(path, ".cc") && !(has_extension(path, ".h") && !is_test)) continue;
    std::string_view folder = folder_of(path);
    while (!folder.empty() && repository.count(std::string{folder} + "/CMakeLists.txt") == 0) {
      folder = folder_of(folder);
    }
    const auto cmake = repository.find(std::string{folder} + "/CMakeLists.txt");
    const std::string_view name = std::string_view{path}.substr(folder.size() + 1);
    if (cmake == repository.end() || cmake_words(cmake->second).count(name) == 0) {
      findings.push_back(
          finding(path, 0, "is not named in " + std::string{folder} + "/CMakeLists.txt"));
    }
  }
  return findings;
}

}  // namespace secondsight::test
