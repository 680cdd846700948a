#include "loadtest/body.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "loadtest/random.h"

namespace secondsight::loadtest {
namespace {

std::vector<std::byte> bytes_of(const Body& body) {
  std::vector<std::byte> bytes;
  while (bytes.size() < body.size_bytes()) {
    const auto run = body.run_at(bytes.size());
    EXPECT_FALSE(run.empty());
    bytes.insert(bytes.end(), run.begin(), run.end());
  }
  EXPECT_EQ(bytes.size(), body.size_bytes());
  EXPECT_TRUE(body.run_at(body.size_bytes()).empty());
  return bytes;
}

bool verifies(const Body& body, const std::vector<std::byte>& bytes) {
  BodyVerifier verifier(body);
  verifier.feed(bytes);
  return verifier.complete();
}

TEST(Body, IsAPureFunctionOfNameAndSize) {
  for (const std::uint64_t size : {0u, 1u, 15u, 16u, 17u, 4'096u, 600'000u}) {
    const auto bytes = bytes_of(Body("key", size));
    EXPECT_EQ(bytes, bytes_of(Body("key", size))) << size;
    EXPECT_TRUE(verifies(Body("key", size), bytes)) << size;
  }
  EXPECT_NE(bytes_of(Body("a", 100)), bytes_of(Body("b", 100)));
  const auto longer = bytes_of(Body("a", 101));
  EXPECT_NE(bytes_of(Body("a", 100)), std::vector<std::byte>(longer.begin(), longer.end() - 1));
}

TEST(Body, AnyFlippedByteIsNoticed) {
  const Body body("flip", 3'000);
  auto bytes = bytes_of(body);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::byte right = bytes[i];
    bytes[i] ^= std::byte{static_cast<unsigned char>(1u << (i % 8))};
    EXPECT_FALSE(verifies(body, bytes)) << i;
    bytes[i] = right;
  }
  EXPECT_TRUE(verifies(body, bytes));
}

TEST(Body, FlipsFarInsideAreNoticed) {
  const Body body("large", 1'000'000);
  auto bytes = bytes_of(body);
  Random random(9);
  for (int i = 0; i < 50; ++i) {
    const std::size_t at = random.next() % bytes.size();
    bytes[at] ^= std::byte{0x10};
    EXPECT_FALSE(verifies(body, bytes)) << at;
    bytes[at] ^= std::byte{0x10};
  }
}

TEST(Body, ShortAndLongBodiesAreNoticed) {
  const Body body("length", 500);
  auto bytes = bytes_of(body);
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(verifies(body, bytes));
  bytes.resize(499);
  EXPECT_FALSE(verifies(body, bytes));
  EXPECT_FALSE(verifies(body, {}));
  EXPECT_TRUE(verifies(Body("empty", 0), {}));
}

TEST(Body, SwappedBlocksAreNoticed) {
  const Body body("blocks", 12u << 20);
  const auto bytes = bytes_of(body);
  for (const std::size_t block : {4'096u, 65'536u, 262'144u, 4u << 20}) {
    const std::span<const std::byte> second(bytes.data() + block, block);
    EXPECT_TRUE(body.matches(block, second));
    EXPECT_FALSE(body.matches(0, second)) << block;
    EXPECT_FALSE(body.matches(2 * block, second)) << block;
  }
}

TEST(Body, AnotherObjectsBlockIsNoticed) {
  const Body one("one", 200'000);
  const auto other = bytes_of(Body("other", 200'000));
  for (std::size_t at = 0; at + 64 <= other.size(); at += 4'096) {
    EXPECT_FALSE(one.matches(at, std::span(other).subspan(at, 64))) << at;
  }
}

TEST(BodyVerifier, TakesAnySplit) {
  const Body body("split", 300'000);
  const auto bytes = bytes_of(body);
  Random random(21);
  for (int round = 0; round < 20; ++round) {
    BodyVerifier verifier(body);
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t count =
          std::min<std::size_t>(1 + random.next() % 70'000, bytes.size() - at);
      EXPECT_FALSE(verifier.complete());
      EXPECT_TRUE(verifier.feed(std::span(bytes).subspan(at, count)));
      at += count;
    }
    EXPECT_TRUE(verifier.complete());
  }
}

}  // namespace
}  // namespace secondsight::loadtest
