#include "proxy/machine_memory.h"

#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace secondsight::proxy {
namespace {

TEST(MachineMemory, ReadsALimitAndNothingElse) {
  EXPECT_EQ(read_memory_max("536870912\n"), 536870912U);
  EXPECT_EQ(read_memory_max("0"), 0U);
  for (const char* text : {"max\n", "max", "", "\n", "12 34", "-1", "12kB", "99999999999999999999"})
    EXPECT_EQ(read_memory_max(text), std::nullopt) << text;
}

TEST(MachineMemory, IsNoMoreThanTheKernelSays) {
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::uint64_t kibibytes = 0;
  ASSERT_TRUE(file >> name >> kibibytes);
  ASSERT_EQ(name, "MemTotal:");
  const std::uint64_t bytes = machine_memory_bytes();
  EXPECT_GT(bytes, 0U);
  EXPECT_LE(bytes / 1024, kibibytes);
}

}  // namespace
}  // namespace secondsight::proxy
