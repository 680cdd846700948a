#include "cache/tags.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace secondsight::cache {
namespace {

using Lines = std::vector<std::pair<std::string, std::string>>;

policy::FieldBlock fields_of(const Lines& lines) {
  policy::FieldBlock fields;
  for (const auto& [name, value] : lines) fields.add(name, value);
  return fields;
}

TEST(Tags, AreReadFromBothFields) {
  struct Row {
    const char* what;
    Lines lines;
    std::vector<std::string> tags;
  };
  for (const Row& row : {
           Row{"none", {{"Cache-Control", "max-age=1"}}, {}},
           Row{"no field at all", {}, {}},
           Row{"blanks separate keys", {{"Surrogate-Key", "a  b\tc "}}, {"a", "b", "c"}},
           Row{"commas are part of a key", {{"Surrogate-Key", "a,b c"}}, {"a,b", "c"}},
           Row{"commas separate tags", {{"Cache-Tag", "a, b ,,c,"}}, {"a", "b", "c"}},
           Row{"blanks inside are part of a tag", {{"Cache-Tag", "a b, c"}}, {"a b", "c"}},
           Row{"names without case, tags with it", {{"SURROGATE-key", "A a"}}, {"A", "a"}},
           Row{"any bytes", {{"Cache-Tag", "\xC3\xA4\xFF"}}, {"\xC3\xA4\xFF"}},
           Row{"empty lines", {{"Cache-Tag", ""}, {"Surrogate-Key", " "}}, {}},
           Row{"several lines, in order",
               {{"Cache-Tag", "a"}, {"X", "b"}, {"Surrogate-Key", "c d"}, {"Cache-Tag", "e"}},
               {"a", "c", "d", "e"}},
       }) {
    SCOPED_TRACE(row.what);
    const auto fields = fields_of(row.lines);
    TagReader reader(fields);
    std::vector<std::string> tags;
    while (const auto tag = reader.next()) tags.emplace_back(*tag);
    EXPECT_EQ(tags, row.tags);
    EXPECT_FALSE(reader.exceeds_bounds());
  }
}

TEST(Tags, BoundsAreNoticed) {
  const auto count = [](const policy::FieldBlock& fields) {
    TagReader reader(fields);
    std::size_t tags = 0;
    while (reader.next()) ++tags;
    return std::pair{tags, reader.exceeds_bounds()};
  };
  std::string many;
  for (std::size_t i = 0; i < kTagsMax; ++i) many += std::to_string(i) + " ";
  EXPECT_EQ(count(fields_of({{"Surrogate-Key", many}})), std::pair(kTagsMax, false));
  EXPECT_EQ(count(fields_of({{"Surrogate-Key", many}, {"Cache-Tag", "x"}})),
            std::pair(kTagsMax, true));
  const std::string long_tag(kTagBytesMax, 'x');
  EXPECT_EQ(count(fields_of({{"Cache-Tag", long_tag}})), std::pair(std::size_t{1}, false));
  EXPECT_EQ(count(fields_of({{"Cache-Tag", "a," + long_tag + "x"}})),
            std::pair(std::size_t{1}, true));
}

}  // namespace
}  // namespace secondsight::cache
