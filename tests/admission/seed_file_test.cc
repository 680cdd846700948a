#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/stat.h>
#include <thread>

#include <gtest/gtest.h>

#include "admission/fingerprint.h"

namespace secondsight::admission {
namespace {

namespace fs = std::filesystem;

class SeedFile : public ::testing::Test {
 protected:
  SeedFile() {
    std::string pattern = (fs::temp_directory_path() / "seed_file_test.XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
  }
  ~SeedFile() override { fs::remove_all(directory_); }

  fs::path path() const { return directory_ / "seed"; }
  std::string content() const {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& bytes) const {
    std::ofstream(path(), std::ios::binary | std::ios::trunc) << bytes;
  }
  Result<FingerprintSeed> load() const { return FingerprintSeed::load_or_create(directory_); }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(directory_)) {
      found.push_back(entry.path().filename().string());
    }
    return found;
  }

  fs::path directory_;
};

// version 1, seed 00 01 02 .. 1f
const std::string kGolden = [] {
  std::string file = "2nd-seed";
  file += std::string("\x01\x00\x00\x00", 4);
  for (char c = 0; c < 32; ++c) file += c;
  file += std::string("\x5D\xAA\x4F\xAC\x6A\x7E\x28\x7A", 8);
  return file;
}();

TEST_F(SeedFile, ReadsTheGoldenFile) {
  write(kGolden);
  const auto seed = load();
  ASSERT_TRUE(seed.has_value()) << seed.error().message();
  FingerprintSeed::Bytes bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  EXPECT_EQ(seed->id(), FingerprintSeed(bytes).id());
}

TEST_F(SeedFile, IsMadeOnceAndReadEverAfter) {
  const auto made = load();
  ASSERT_TRUE(made.has_value()) << made.error().message();
  const std::string written = content();
  EXPECT_EQ(written.size(), kGolden.size());
  EXPECT_EQ(written.substr(0, 12), kGolden.substr(0, 12));

  const auto read = load();
  ASSERT_TRUE(read.has_value()) << read.error().message();
  EXPECT_EQ(read->id(), made->id());
  EXPECT_EQ(read->fingerprint_of("key"), made->fingerprint_of("key"));
  EXPECT_EQ(content(), written);
  EXPECT_EQ(names(), std::vector<std::string>{"seed"}) << "something was left beside it";
}

TEST_F(SeedFile, LookingForItMakesNone) {
  EXPECT_EQ(FingerprintSeed::load(directory_).error(),
            boost::system::errc::no_such_file_or_directory);
  EXPECT_TRUE(names().empty());
  write(kGolden);
  const auto found = FingerprintSeed::load(directory_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->id(), load()->id());
  write(kGolden.substr(1));
  EXPECT_EQ(FingerprintSeed::load(directory_).error(), boost::system::errc::bad_message);
}

TEST_F(SeedFile, BelongsToItsOwnerAloneWhateverTheUmask) {
  const mode_t before = ::umask(0);
  const auto made = load();
  ::umask(before);
  ASSERT_TRUE(made.has_value());
  struct stat status {};
  ASSERT_EQ(::stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, mode_t{0600});
}

TEST_F(SeedFile, AnyFlippedBitIsReportedAndTheFileLeftAlone) {
  for (std::size_t bit = 0; bit < kGolden.size() * 8; ++bit) {
    std::string damaged = kGolden;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    write(damaged);
    const auto seed = load();
    ASSERT_FALSE(seed.has_value()) << "bit " << bit;
    EXPECT_EQ(seed.error(), boost::system::errc::bad_message) << "bit " << bit;
    EXPECT_EQ(content(), damaged) << "bit " << bit;
  }
}

TEST_F(SeedFile, AnyOtherLengthIsReportedAndTheFileLeftAlone) {
  for (std::size_t length = 0; length < 2 * kGolden.size(); ++length) {
    if (length == kGolden.size()) continue;
    const std::string damaged = (kGolden + kGolden).substr(0, length);
    write(damaged);
    const auto seed = load();
    ASSERT_FALSE(seed.has_value()) << length << " bytes";
    EXPECT_EQ(seed.error(), boost::system::errc::bad_message) << length << " bytes";
    EXPECT_EQ(content(), damaged) << length << " bytes";
  }
}

TEST_F(SeedFile, LeftoversOfACrashDoNoHarm) {
  std::ofstream(directory_ / ("seed.new." + std::to_string(::getpid()))) << "half a se";
  const auto made = load();
  ASSERT_TRUE(made.has_value()) << made.error().message();
  EXPECT_EQ(load()->id(), made->id());
  EXPECT_EQ(content().size(), kGolden.size());
}

TEST_F(SeedFile, WorldErrorsAreReturned) {
  const auto missing = FingerprintSeed::load_or_create(directory_ / "missing");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error(), boost::system::errc::no_such_file_or_directory);

  fs::create_directory(path());
  const auto directory = load();
  ASSERT_FALSE(directory.has_value());
  EXPECT_EQ(directory.error(), boost::system::errc::is_a_directory);

  std::ofstream(directory_ / "file") << "";
  const auto file = FingerprintSeed::load_or_create(directory_ / "file");
  ASSERT_FALSE(file.has_value());
  EXPECT_EQ(file.error(), boost::system::errc::not_a_directory);
}

TEST_F(SeedFile, FailsWholeWhenItCannotBeCreated) {
  // A directory stands where the file is written aside.
  fs::create_directory(directory_ / ("seed.new." + std::to_string(::getpid())));
  const auto seed = load();
  ASSERT_FALSE(seed.has_value());
  EXPECT_EQ(seed.error(), boost::system::errc::is_a_directory);
  EXPECT_FALSE(fs::exists(path()));
}

TEST_F(SeedFile, ASeedInUseIsStoredWhereThereIsNone) {
  EXPECT_EQ(FingerprintSeed::load(directory_).error(),
            boost::system::errc::no_such_file_or_directory);
  const auto ours = FingerprintSeed::random();
  const auto other = FingerprintSeed::random();
  ASSERT_TRUE(ours->store_in(directory_).has_value());
  EXPECT_EQ(FingerprintSeed::load(directory_)->id(), ours->id());
  ASSERT_TRUE(other->store_in(directory_).has_value());
  EXPECT_EQ(FingerprintSeed::load(directory_)->id(), ours->id());
  EXPECT_EQ(names(), std::vector<std::string>{"seed"});
}

}  // namespace
}  // namespace secondsight::admission
