#include "tests/tidy_test/repository.h"

#include <gmock/gmock.h>

#include <gtest/gtest.h>

#include "tests/tidy_test/layer_rules.h"
#include "tests/tidy_test/text_rules.h"

namespace secondsight::test {
namespace {

using testing::IsEmpty;

const Repository& this_repository() {
  static const Repository kRepository = read_repository(SECONDSIGHT_REPOSITORY);
  return kRepository;
}

TEST(ThisRepository, IsRead) {
  EXPECT_EQ(this_repository().count("config/settings.h"), 1U);
  EXPECT_EQ(this_repository().count("CMakeLists.txt"), 1U);
  EXPECT_EQ(this_repository().count("Makefile"), 1U);
}

TEST(ThisRepository, IncludesObeyTheLayers) {
  EXPECT_THAT(includes_against_the_layers(this_repository()), IsEmpty());
}
TEST(ThisRepository, KeepsBeastAtTheRim) {
  EXPECT_THAT(beast_outside_the_rim(this_repository()), IsEmpty());
}
TEST(ThisRepository, HasOnlyItsFolders) {
  EXPECT_THAT(unknown_folders(this_repository()), IsEmpty());
}
TEST(ThisRepository, BuildsEverySource) {
  EXPECT_THAT(sources_not_in_cmake(this_repository()), IsEmpty());
}
TEST(ThisRepository, GuardsEveryHeader) {
  EXPECT_THAT(headers_without_guard(this_repository()), IsEmpty());
}
TEST(ThisRepository, KeepsFilesShort) {
  EXPECT_THAT(files_too_long(this_repository()), IsEmpty());
}
TEST(ThisRepository, HasTidyBlanks) {
  EXPECT_THAT(untidy_blanks(this_repository()), IsEmpty());
}
TEST(ThisRepository, HoldsNoNotesToOneself) {
  EXPECT_THAT(notes_to_oneself(this_repository()), IsEmpty());
}
TEST(ThisRepository, LinksToWhatExists) {
  EXPECT_THAT(broken_links(this_repository()), IsEmpty());
}
TEST(ThisRepository, NamesFilesInSnakeCase) {
  EXPECT_THAT(odd_file_names(this_repository()), IsEmpty());
}

}  // namespace
}  // namespace secondsight::test
