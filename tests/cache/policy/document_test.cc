// docs/http-caching.md says which test shows which clause. This holds it to that.
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

namespace {

namespace fs = std::filesystem;

const fs::path kSource = SECONDSIGHT_SOURCE_DIR;

std::string read(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

/// "Suite.Name" -> the test's own text.
std::map<std::string, std::string> tests_below(const fs::path& folder) {
  std::map<std::string, std::string> tests;
  const std::regex opening(R"(TEST(?:_F|_P)?\((\w+),\s*(\w+)\))");
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".cc") continue;
    const std::string text = read(entry.path());
    const std::sregex_iterator end;
    for (std::sregex_iterator i(text.begin(), text.end(), opening); i != end; ++i) {
      const std::sregex_iterator next = std::next(i);
      const auto from = static_cast<std::size_t>(i->position());
      const auto to = next == end ? text.size() : static_cast<std::size_t>(next->position());
      tests[(*i)[1].str() + "." + (*i)[2].str()] = text.substr(from, to - from);
    }
  }
  return tests;
}

std::string all_headers() {
  std::string text;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kSource / "cache"))
    if (entry.path().extension() == ".h") text += read(entry.path());
  return text;
}

std::vector<std::string> in_backticks(const std::string& cell) {
  std::vector<std::string> words;
  const std::regex quoted("`([^`]+)`");
  for (std::sregex_iterator i(cell.begin(), cell.end(), quoted); i != std::sregex_iterator(); ++i)
    words.push_back((*i)[1].str());
  return words;
}

/// Whether `text` names that clause itself, not only one below it.
bool names_clause(const std::string& text, const std::string& clause) {
  for (auto at = text.find(clause); at != std::string::npos; at = text.find(clause, at + 1)) {
    const std::string after = text.substr(at + clause.size(), 2);
    if (!std::regex_match(after, std::regex("[0-9].|[.][0-9]"))) return true;
  }
  return false;
}

struct Row {
  std::string clause;
  std::vector<std::string> functions, tests;
};

std::vector<Row> rows_of_the_document() {
  std::vector<Row> rows;
  std::istringstream lines(read(kSource / "docs" / "http-caching.md"));
  const std::regex row(R"(\| ((?:RFC \d+|Edge Architecture) [\d.]+) \| .* \| (.*) \| (.*) \|)");
  std::smatch match;
  for (std::string line; std::getline(lines, line);)
    if (std::regex_match(line, match, row))
      rows.push_back({match[1].str(), in_backticks(match[2].str()), in_backticks(match[3].str())});
  return rows;
}

TEST(HttpCachingDocument, EveryRowIsShownByATestOfThatClause) {
  const auto tests = tests_below(kSource / "tests" / "cache");
  const std::string headers = all_headers();
  const std::vector<Row> rows = rows_of_the_document();
  ASSERT_GT(rows.size(), 40u);
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    EXPECT_FALSE(row.functions.empty());
    EXPECT_FALSE(row.tests.empty());
    for (const std::string& function : row.functions)
      EXPECT_TRUE(std::regex_search(headers, std::regex("\\b" + function + "\\b"))) << function;
    for (const std::string& test : row.tests) {
      const auto found = tests.find(test);
      ASSERT_NE(found, tests.end()) << test;
      EXPECT_TRUE(names_clause(found->second, row.clause)) << test << " has no such row";
    }
  }
}

TEST(HttpCachingDocument, NoTestOfARuleIsMissing) {
  std::set<std::string> named;
  for (const Row& row : rows_of_the_document()) named.insert(row.tests.begin(), row.tests.end());
  for (const auto& [test, text] : tests_below(kSource / "tests" / "cache" / "policy")) {
    if (text.find("{\"RFC ") == std::string::npos) continue;  // no table of clauses
    EXPECT_TRUE(named.contains(test)) << test;
  }
}

}  // namespace
