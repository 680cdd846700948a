#include "tests/tidy_test/text_rules.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace secondsight::test {
namespace {

constexpr std::size_t kMaxLines = 700;

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool has_word(std::string_view line, std::string_view word) {
  for (std::size_t at = line.find(word); at != std::string_view::npos;
       at = line.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool starts = at == 0 || !is_word_character(line[at - 1]);
    const bool ends = end == line.size() || !is_word_character(line[end]);
    if (starts && ends) return true;
  }
  return false;
}

/// Inputs of fuzzers and golden files are data: their blanks mean something.
bool is_data(std::string_view path) {
  return path.find("/corpus/") != std::string_view::npos ||
         path.find("/golden/") != std::string_view::npos;
}

bool is_makefile(std::string_view path) {
  return path.ends_with("Makefile");
}

/// Whether a link leads somewhere; `target` is as written, without the file's own folder.
bool leads_somewhere(const Repository& repository, std::string_view from, std::string_view target) {
  const std::filesystem::path base{std::string{folder_of(from)}};
  std::string path = (base / std::string{target}).lexically_normal().generic_string();
  if (path.ends_with('/')) path.pop_back();
  if (path == "." || repository.count(path) != 0) return true;
  const auto below = repository.lower_bound(path + '/');
  return below != repository.end() && below->first.starts_with(path + '/');
}

bool is_external(std::string_view target) {
  return target.empty() || target.starts_with('#') ||
         target.find("://") != std::string_view::npos || target.starts_with("mailto:");
}

void check_links(const Repository& repository, const std::string& path, std::size_t number,
                 std::string_view line, Findings& findings) {
  constexpr std::string_view kOpen = "](";
  for (std::size_t at = line.find(kOpen); at != std::string_view::npos;
       at = line.find(kOpen, at + 1)) {
    std::string_view target = line.substr(at + kOpen.size());
    target = target.substr(0, target.find_first_of(") "));
    if (is_external(target)) continue;
    target = target.substr(0, target.find('#'));
    if (!leads_somewhere(repository, path, target)) {
      findings.push_back(finding(path, number, "no " + std::string{target} + " to link to"));
    }
  }
}

}  // namespace

Findings headers_without_guard(const Repository& repository) {
  Findings findings;
  for (const auto& [path, text] : repository) {
    if (!has_extension(path, ".h")) continue;
    const auto lines = lines_of(text);
    if (std::find(lines.begin(), lines.end(), "#pragma once") == lines.end()) {
      findings.push_back(finding(path, 0, "has no #pragma once"));
    }
  }
  return findings;
}

Findings files_too_long(const Repository& repository) {
  Findings findings;
  for (const auto& [path, text] : repository) {
    if (!has_extension(path, ".h") && !has_extension(path, ".cc")) continue;
    const std::size_t lines = lines_of(text).size();
    if (lines > kMaxLines) {
      findings.push_back(finding(path, 0, "has " + std::to_string(lines) + " lines; split it"));
    }
  }
  return findings;
}

Findings untidy_blanks(const Repository& repository) {
  Findings findings;
  for (const auto& [path, text] : repository) {
    if (is_data(path) || text.empty()) continue;
    if (text.back() != '\n') findings.push_back(finding(path, 0, "has no newline at its end"));
    std::size_t number = 0;
    for (const std::string_view line : lines_of(text)) {
      ++number;
      if (!line.empty() && (line.back() == ' ' || line.back() == '\t')) {
        findings.push_back(finding(path, number, "blank at the end"));
      }
      if (line.find('\t') != std::string_view::npos && !is_makefile(path)) {
        findings.push_back(finding(path, number, "tab"));
      }
      if (line.find('\r') != std::string_view::npos) {
        findings.push_back(finding(path, number, "carriage return"));
      }
    }
  }
  return findings;
}

Findings notes_to_oneself(const Repository& repository) {
  // Written in halves, so that this file does not find itself.
  constexpr std::array<std::string_view, 4> kWords{
      "TO"
      "DO",
      "FIX"
      "ME",
      "XX"
      "X",
      "HA"
      "CK"};
  Findings findings;
  for (const auto& [path, text] : repository) {
    if (is_data(path)) continue;
    std::size_t number = 0;
    for (const std::string_view line : lines_of(text)) {
      ++number;
      for (const std::string_view word : kWords) {
        if (has_word(line, word)) findings.push_back(finding(path, number, word));
      }
    }
  }
  return findings;
}

Findings broken_links(const Repository& repository) {
  Findings findings;
  for (const auto& [path, text] : repository) {
    if (!has_extension(path, ".md")) continue;
    std::size_t number = 0;
    bool in_code = false;
    for (const std::string_view line : lines_of(text)) {
      ++number;
      if (line.starts_with("```")) in_code = !in_code;
      if (!in_code) check_links(repository, path, number, line, findings);
    }
  }
  return findings;
}

Findings odd_file_names(const Repository& repository) {
  Findings findings;
  for (const auto& [path, text] : repository) {
    if (!has_extension(path, ".h") && !has_extension(path, ".cc")) continue;
    const bool is_snake = std::all_of(path.begin(), path.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '/' || c == '.';
    });
    if (!is_snake) findings.push_back(finding(path, 0, "is not in snake_case"));
  }
  return findings;
}

}  // namespace secondsight::test
