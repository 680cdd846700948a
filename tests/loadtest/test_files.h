#pragma once
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace secondsight::loadtest {

/// A directory of one test, removed at its end.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "loadtest-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string path(std::string_view name) const { return (path_ / name).string(); }
  std::string write(std::string_view name, std::string_view content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }

 private:
  std::filesystem::path path_;
};

inline std::string read_text(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// Where the recorded traces are, which are not part of the project.
inline std::string recorded_trace(const std::string& name) {
  const char* const given = std::getenv("SECONDSIGHT_TRACES");
  return std::string(given != nullptr ? given : SECONDSIGHT_TRACES_DEFAULT) + '/' + name;
}

/// Skips the test, saying so, where the recorded traces are absent.
#define NEED_RECORDED_TRACE(path)       \
  if (!std::filesystem::exists(path))   \
  GTEST_SKIP() << "NOT RUN: " << (path) \
               << " is absent (set SECONDSIGHT_TRACES to the folder of recorded traces)"

}  // namespace secondsight::loadtest
