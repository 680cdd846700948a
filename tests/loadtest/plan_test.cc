#include "loadtest/plan.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace secondsight::loadtest {
namespace {

class ListSource final : public RequestSource {
 public:
  explicit ListSource(std::vector<SourceRequest> requests) : requests_(std::move(requests)) {}
  bool next(SourceRequest& request) override {
    if (at_ == requests_.size()) return false;
    request = requests_[at_++];
    return true;
  }

 private:
  std::vector<SourceRequest> requests_;
  std::size_t at_ = 0;
};

ListSource sample() {
  return ListSource({{0, "a", 10}, {1, "b", 20}, {2, "a", 10}, {3, "c", 5}, {4, "a", 11}});
}

TEST(Plan, CountsEachObjectOverTheWholeRun) {
  ListSource source = sample();
  const Plan plan = make_plan(source);
  ASSERT_EQ(plan.objects.size(), 3u);
  EXPECT_EQ(plan.requests, (std::vector<std::uint32_t>{0, 1, 0, 2, 0}));
  EXPECT_EQ(plan.objects[0].target, "/o/a/10");
  EXPECT_EQ(plan.objects[0].times_asked, 3u);
  EXPECT_EQ(plan.one_hit_objects, 2u);
  EXPECT_EQ(plan.unique_bytes, 35u);
  EXPECT_EQ(plan.requested_bytes, 55u);
  EXPECT_EQ(plan.size_changes, 1u) << "a key's first size stands";
}

TEST(Plan, AShorterRunHasItsOwnOneHits) {
  ListSource source = sample();
  const Plan plan = make_plan(source, 2);
  EXPECT_EQ(plan.requests.size(), 2u);
  EXPECT_EQ(plan.one_hit_objects, 2u);
}

TEST(Plan, ShapeOfAKnownPlan) {
  ListSource source = sample();
  const PlanShape shape = shape_of(make_plan(source));
  EXPECT_DOUBLE_EQ(shape.one_hit_object_share, 2.0 / 3);
  EXPECT_DOUBLE_EQ(shape.one_hit_request_share, 2.0 / 5);
  EXPECT_DOUBLE_EQ(shape.one_hit_byte_share, 25.0 / 35);
  EXPECT_DOUBLE_EQ(shape.best_hit_share, 2.0 / 5);
  EXPECT_EQ(shape.asked_two, 0u);
  EXPECT_EQ(shape.asked_few, 1u);
  EXPECT_EQ(shape.asked_many, 0u);
  EXPECT_DOUBLE_EQ(shape.top_10_share, 1);
  EXPECT_EQ(shape.sorted_sizes, (std::vector<std::uint64_t>{5, 10, 20}));
  EXPECT_EQ(shape.sorted_distances, (std::vector<std::uint64_t>{2, 2}));
}

TEST(Plan, ShapeOfNothingIsZero) {
  ListSource source({});
  const PlanShape shape = shape_of(make_plan(source));
  EXPECT_EQ(shape.one_hit_object_share, 0);
  EXPECT_EQ(shape.best_hit_share, 0);
  EXPECT_EQ(shape.zipf_slope, 0);
}

}  // namespace
}  // namespace secondsight::loadtest
