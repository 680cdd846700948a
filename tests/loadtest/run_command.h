#pragma once
#include <array>
#include <cstdio>
#include <string>
#include <sys/wait.h>

namespace secondsight::loadtest {

/// What secondsight-load said to these arguments, which a shell reads.
struct Ran {
  int code = -1;
  std::string text;  // standard output and error
};
inline Ran run(const std::string& arguments) {
  const std::string line = std::string("'") + SECONDSIGHT_LOAD_BINARY + "' " + arguments + " 2>&1";
  std::FILE* const pipe = popen(line.c_str(), "r");
  Ran ran;
  std::array<char, 4096> buffer;
  std::size_t count = 0;
  while ((count = fread(buffer.data(), 1, buffer.size(), pipe)) > 0)
    ran.text.append(buffer.data(), count);
  const int status = pclose(pipe);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

}  // namespace secondsight::loadtest
