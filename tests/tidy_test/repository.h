#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace secondsight::test {

/// The repository's files by their path from its root ("proxy/main.cc"), folders with '/'; text
/// files with their text, others empty.
using Repository = std::map<std::string, std::string>;

/// What breaks a rule: "path:line: why", one for each place.
using Findings = std::vector<std::string>;

/// Reads what is below `root`, without what git ignores (build folders) and git's own.
Repository read_repository(const std::filesystem::path& root);

/// The lines of a text, without their newlines.
std::vector<std::string_view> lines_of(std::string_view text);

bool has_extension(std::string_view path, std::string_view extension);
/// "proxy" for "proxy/main.cc"; empty for a file in the root.
std::string_view folder_of(std::string_view path);
/// A finding's text; line 0 means the file as a whole.
std::string finding(std::string_view path, std::size_t line, std::string_view why);

}  // namespace secondsight::test
