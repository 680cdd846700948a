#include "cache/target.h"

#include <random>

#include <gtest/gtest.h>

namespace secondsight::cache {
namespace {

std::string without_dots(std::string_view path) {
  std::string out = "before";
  append_path_without_dots(path, out);
  EXPECT_TRUE(out.starts_with("before"));
  return out.substr(6);
}

TEST(Target, PathsWithoutDotSegments) {
  struct Row {
    const char* clause;
    const char *path, *expected;
  };
  const Row rows[] = {
      {"RFC 3986 5.2.4: the walk-through", "/a/b/c/./../../g", "/a/g"},
      {"RFC 3986 5.2.4: a last dot leaves its slash", "/a/.", "/a/"},
      {"RFC 3986 5.2.4: two last dots leave that of the segment above", "/a/b/..", "/a/"},
      {"RFC 3986 5.2.4: what is left of all", "/a/..", "/"},
      {"RFC 3986 5.2.4: the root stays the root", "/..", "/"},
      {"RFC 3986 5.2.4: from the root nothing goes further up", "/../../a/../../b", "/b"},
      {"RFC 3986 5.2.4: an empty segment is one", "/a//../b", "/a/b"},
      {"RFC 3986 5.2.4: empty segments stay", "//a///b/", "//a///b/"},
      {"RFC 3986 5.2.4: an empty segment behind a dot", "/.//a", "//a"},
      {"RFC 3986 5.2.4: more dots than two are a name", "/a/.../b/..c/.d", "/a/.../b/..c/.d"},
      {"RFC 3986 6.2.2.3: nothing to remove", "/a/b", "/a/b"},
      {"RFC 3986 6.2.2.3: after 6.2.2.2, so that escaped dots count", "/a/%2e%2E/.%2e/b", "/b"},
      {"RFC 3986 6.2.2.3: an escaped slash ends no segment", "/a/..%2fb/..%2F", "/a/..%2Fb/..%2F"},
      {"RFC 3986 6.2.2.3: no dot segment, still normalised", "/%61/b%3a", "/a/b%3A"},
      {"RFC 3986 2.1: a broken escape, nothing is touched", "/a/../%zz", "/a/../%zz"},
      {"RFC 3986 2.1: even where it would go", "/%zz/../%61", "/%zz/../%61"},
      {"RFC 9110 4.2.3: an empty path", "", "/"},
      {"RFC 9112 3.2.4: no path", "*", "*"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    EXPECT_EQ(without_dots(row.path), row.expected);
  }
}

/// References against "http://a/b/c/d;p?q", merged with its path as 5.2.3 says: those where the
/// path decides.
TEST(Target, TheExamplesOfReferenceResolution) {
  struct Row {
    const char* clause;
    const char *reference, *expected;
  };
  const Row rows[] = {
      {"RFC 3986 5.4.1", "g", "/b/c/g"},
      {"RFC 3986 5.4.1", "./g", "/b/c/g"},
      {"RFC 3986 5.4.1", "g/", "/b/c/g/"},
      {"RFC 3986 5.4.1", "/g", "/g"},
      {"RFC 3986 5.4.1", ";x", "/b/c/;x"},
      {"RFC 3986 5.4.1", "g;x", "/b/c/g;x"},
      {"RFC 3986 5.4.1", ".", "/b/c/"},
      {"RFC 3986 5.4.1", "./", "/b/c/"},
      {"RFC 3986 5.4.1", "..", "/b/"},
      {"RFC 3986 5.4.1", "../", "/b/"},
      {"RFC 3986 5.4.1", "../g", "/b/g"},
      {"RFC 3986 5.4.1", "../..", "/"},
      {"RFC 3986 5.4.1", "../../", "/"},
      {"RFC 3986 5.4.1", "../../g", "/g"},
      {"RFC 3986 5.4.2", "../../../g", "/g"},
      {"RFC 3986 5.4.2", "../../../../g", "/g"},
      {"RFC 3986 5.4.2", "/./g", "/g"},
      {"RFC 3986 5.4.2", "/../g", "/g"},
      {"RFC 3986 5.4.2", "g.", "/b/c/g."},
      {"RFC 3986 5.4.2", ".g", "/b/c/.g"},
      {"RFC 3986 5.4.2", "g..", "/b/c/g.."},
      {"RFC 3986 5.4.2", "..g", "/b/c/..g"},
      {"RFC 3986 5.4.2", "./../g", "/b/g"},
      {"RFC 3986 5.4.2", "./g/.", "/b/c/g/"},
      {"RFC 3986 5.4.2", "g/./h", "/b/c/g/h"},
      {"RFC 3986 5.4.2", "g/../h", "/b/c/h"},
      {"RFC 3986 5.4.2", "g;x=1/./y", "/b/c/g;x=1/y"},
      {"RFC 3986 5.4.2", "g;x=1/../y", "/b/c/y"},
  };
  for (const Row& row : rows) {
    const std::string reference = row.reference;
    const std::string merged = reference.starts_with('/') ? reference : "/b/c/" + reference;
    EXPECT_EQ(without_dots(merged), row.expected) << row.clause << " " << reference;
  }
}

TEST(Target, WhatTheOriginIsAskedFor) {
  struct Row {
    const char* clause;
    const char *target, *expected;
  };
  const Row rows[] = {
      {"RFC 3986 6.2.2.3: no dots, byte for byte", "/%7ea/b?c/../d", "/%7ea/b?c/../d"},
      {"RFC 3986 6.2.2.3: a name with a dot, byte for byte", "/%7ea/.b%2f", "/%7ea/.b%2f"},
      {"RFC 3986 6.2.2.3: the path of the key, the client's query", "/a/../%7eb?%7ec/../d",
       "/~b?%7ec/../d"},
      {"RFC 3986 6.2.2.3: escaped dots", "/a/%2E%2e/b", "/b"},
      {"RFC 3986 6.2.2.3: an empty query stays", "/a/..?", "/?"},
      {"RFC 3986 2.1: a broken escape in the path", "/a/../b%zz?c", "/a/../b%zz?c"},
      {"RFC 3986 2.1: a broken escape in the query", "/a/../b?c%zz", "/b?c%zz"},
      {"RFC 9112 3.2.4: no path", "*", "*"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    EXPECT_EQ(target_without_dots(row.target), row.expected);
  }
}

/// Steps A to E of 5.2.4 as they stand there, on an output buffer of its own.
std::string removed_by_the_letter(std::string input) {
  std::string output;
  const auto drop_last = [&output] {
    output.resize(output.rfind('/') == std::string::npos ? 0 : output.rfind('/'));
  };
  while (!input.empty()) {
    if (input.starts_with("/./")) {
      input.erase(0, 2);
    } else if (input == "/.") {
      input = "/";
    } else if (input.starts_with("/../")) {
      input.erase(0, 3);
      drop_last();
    } else if (input == "/..") {
      input = "/";
      drop_last();
    } else {
      const auto end = std::min(input.find('/', 1), input.size());
      output += input.substr(0, end);
      input.erase(0, end);
    }
  }
  return output;
}

TEST(Target, AnyPathIsTheLettersAndStaysIt) {
  constexpr unsigned kRandomSeed = 20260711;
  SCOPED_TRACE(kRandomSeed);
  std::mt19937 random(kRandomSeed);
  int shortened = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string path;
    for (auto segments = 1 + random() % 7; segments > 0; --segments) {
      constexpr const char* kSegments[] = {"", ".", "..", "a", "bc", "...", ".a", "..."};
      path += "/";
      path += kSegments[random() % std::size(kSegments)];
    }
    const std::string once = without_dots(path);
    ASSERT_EQ(once, removed_by_the_letter(path)) << path;
    ASSERT_EQ(without_dots(once), once) << path;
    ASSERT_EQ(target_without_dots(path + "?q"), once + "?q") << path;
    shortened += once.size() < path.size();
  }
  EXPECT_GT(shortened, 1000);
}

}  // namespace
}  // namespace secondsight::cache
