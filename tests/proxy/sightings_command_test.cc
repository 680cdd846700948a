#include "proxy/sightings_command.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <netinet/in.h>
#include <sstream>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "admission/fingerprint.h"
#include "admission/sighting_snapshot.h"
#include "config/posix_file_system.h"

namespace secondsight::proxy {
namespace {

namespace fs = std::filesystem;

struct Ended {
  int exit_code = -1;
  std::string out, error;
};

Ended run(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "sightings");
  std::ostringstream out, error;
  Ended result;
  result.exit_code =
      run_sightings(static_cast<int>(arguments.size()), arguments.data(), out, error);
  result.out = out.str();
  result.error = error.str();
  return result;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A port that is taken, where nobody listens.
struct DeafPort {
  DeafPort() : socket(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const any = static_cast<sockaddr*>(static_cast<void*>(&address));
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket, any, size), 0);
    EXPECT_EQ(::getsockname(socket, any, &size), 0);
    number = ntohs(address.sin_port);
  }
  ~DeafPort() { ::close(socket); }
  DeafPort(const DeafPort&) = delete;
  DeafPort& operator=(const DeafPort&) = delete;

  const int socket;
  unsigned number = 0;
};

class SightingsCommand : public ::testing::Test {
 protected:
  SightingsCommand() {
    std::string name = (fs::temp_directory_path() / "secondsight-sightings-XXXXXX").string();
    root = ::mkdtemp(name.data()) != nullptr ? name : "";
    first = installation("first");
    second = installation("second");
  }
  ~SightingsCommand() override { fs::remove_all(root); }

  std::string path(const std::string& name) const { return root + "/" + name; }
  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }
  /// The configuration of an installation whose cache is in the folder of that name.
  std::string installation(const std::string& name, const std::string& admission = {},
                           const std::string& disk = "256MiB") const {
    fs::create_directory(path(name));
    return file(name + ".toml", "[origin]\nurl = \"http://127.0.0.1:1\"\n[cache]\ndirectory = \"" +
                                    path(name) + "\"\ndisk = \"" + disk +
                                    "\"\n[admission]\nexpected_keys = 100_000\n" + admission);
  }
  /// `count` requests of just now, for /FIRST, /FIRST+1, ...
  std::string log(const std::string& name, int first_object, int count) const {
    const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    std::string text;
    for (int i = 0; i < count; ++i) {
      text += "{\"msec\":" + std::to_string(now.time_since_epoch().count()) +
              ",\"request_method\":\"GET\",\"http_host\":\"a.example\",\"request_uri\":\"/" +
              std::to_string(first_object + i) + "\",\"status\":200}\n";
    }
    return file(name, text);
  }
  Ended import(const std::string& config, const std::string& what) const {
    return run({"import", "--config", config.c_str(), what.c_str()});
  }
  Ended export_to(const std::string& config, const std::string& to) const {
    return run({"export", "--config", config.c_str(), "--out", to.c_str()});
  }
  void share_seed() const { fs::copy_file(path("first/seed"), path("second/seed")); }

  std::string root, first, second;
};

TEST_F(SightingsCommand, CarriesALogFromOneInstallationToAnother) {
  const Ended imported = import(first, log("log", 0, 1'000));
  EXPECT_EQ(imported.exit_code, 0) << imported.error;
  EXPECT_TRUE(has(imported.out, "1000 logged sightings: merged 1 generation, ")) << imported.out;
  const Ended again = import(first, path("log"));
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_TRUE(has(again.out, "nothing in it was new")) << again.out;

  const std::string bits = path("bits");
  const Ended exported = export_to(first, bits);
  EXPECT_EQ(exported.exit_code, 0) << exported.error;
  struct stat status {};
  ASSERT_EQ(::stat(bits.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  share_seed();
  const Ended carried = import(second, bits);
  EXPECT_EQ(carried.exit_code, 0) << carried.error;
  EXPECT_TRUE(has(carried.out, "merged 1 generation, ")) << carried.out;
  EXPECT_TRUE(has(import(second, bits).out, "nothing in it was new"));
  EXPECT_TRUE(has(import(second, path("log")).out, "nothing in it was new"));
  EXPECT_FALSE(fs::exists(path("second/sightings-import.bits")));

  const std::string back = path("back");
  EXPECT_EQ(export_to(second, back).exit_code, 0);
  EXPECT_TRUE(has(import(first, back).out, "nothing in it was new"));
}

TEST_F(SightingsCommand, TakesSeveralLogsAndSnapshotsAtOnce) {
  import(first, log("one", 0, 100));
  const std::string bits = path("bits"), two = log("two", 100, 100), three = log("three", 200, 100);
  export_to(first, bits);
  share_seed();
  const Ended all =
      run({"import", "--config", second.c_str(), bits.c_str(), two.c_str(), three.c_str()});
  EXPECT_EQ(all.exit_code, 0) << all.error;
  EXPECT_TRUE(has(all.out, "200 logged sightings")) << all.out;
  for (const std::string& what : {path("one"), two, three})
    EXPECT_TRUE(has(import(second, what).out, "nothing in it was new")) << what;
}

TEST_F(SightingsCommand, ReplacesAFileOnlyWhenTold) {
  import(first, log("log", 0, 10));
  const std::string bits = file("bits", "precious");
  const Ended refused = export_to(first, bits);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_TRUE(has(refused.error, "--force")) << refused.error;
  EXPECT_EQ(fs::file_size(bits), 8U);
  const Ended forced = run({"export", "--config", first.c_str(), "--out", bits.c_str(), "--force"});
  EXPECT_EQ(forced.exit_code, 0) << forced.error;
  const auto written = open_file(bits);
  ASSERT_TRUE(written);
  EXPECT_TRUE(admission::read_snapshot(**written));
  EXPECT_EQ(std::distance(fs::directory_iterator(root), fs::directory_iterator{}), 6)
      << "two folders, two settings, log, bits";
}

TEST_F(SightingsCommand, RefusesWhatDoesNotFit) {
  import(first, log("log", 0, 10));
  const std::string bits = path("bits");
  export_to(first, bits);

  const Ended unseeded = import(second, bits);
  EXPECT_EQ(unseeded.exit_code, 1);
  EXPECT_TRUE(has(unseeded.error, "it has no seed yet: copy the seed file")) << unseeded.error;
  EXPECT_TRUE(fs::is_empty(path("second"))) << "no seed was made that the copy would have to fight";

  import(second, path("log"));  // makes a seed of its own
  const Ended other_seed = import(second, bits);
  EXPECT_EQ(other_seed.exit_code, 1);
  EXPECT_TRUE(has(other_seed.error, "made under another seed")) << other_seed.error;

  fs::remove_all(path("second"));
  installation("second", "false_positive_rate = 0.0001\nwindow = \"1h\"\n");
  std::string larger = second;
  file("second.toml", "[origin]\nurl = \"http://127.0.0.1:1\"\n[cache]\ndirectory = \"" +
                          path("second") + "\"\n[admission]\nexpected_keys = 2_000_000\n");
  share_seed();
  const Ended other_size = import(larger, bits);
  EXPECT_EQ(other_size.exit_code, 1);
  EXPECT_TRUE(has(other_size.error, "the same expected_keys and false_positive_rate"))
      << other_size.error;
}

TEST_F(SightingsCommand, RefusesDamage) {
  import(first, log("log", 0, 10));
  const std::string bits = path("bits");
  export_to(first, bits);
  std::ifstream in(bits, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};

  const Ended cut = import(first, file("cut", whole.substr(0, whole.size() / 4)));
  EXPECT_EQ(cut.exit_code, 1);
  EXPECT_TRUE(has(cut.error, "cut off")) << cut.error;
  std::string flipped = whole;
  flipped[20] = static_cast<char>(flipped[20] ^ 1);
  const Ended header = import(first, file("header", flipped));
  EXPECT_EQ(header.exit_code, 1);
  EXPECT_TRUE(has(header.error, "its header is damaged")) << header.error;
  flipped = whole;
  flipped[200] = static_cast<char>(flipped[200] ^ 1);
  const Ended block = import(first, file("block", flipped));
  EXPECT_EQ(block.exit_code, 0) << "the other blocks are good";
  EXPECT_TRUE(has(block.error, "damaged bytes are left out")) << block.error;
  const Ended garbage = import(first, file("garbage", "\x01\x02 nothing\nof the kind\n"));
  EXPECT_EQ(garbage.exit_code, 1);
  EXPECT_TRUE(has(garbage.error, "no line could be used")) << garbage.error;
  const Ended empty = import(first, file("empty", ""));
  EXPECT_EQ(empty.exit_code, 0);
  EXPECT_TRUE(has(empty.out, "nothing to import")) << empty.out;
}

TEST_F(SightingsCommand, SaysThatAnImportWasCutOff) {
  file("first/sightings-import.bits", "");
  const Ended refused = import(first, log("log", 0, 10));
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_TRUE(has(refused.error, "another import is under way, or one was cut off"))
      << refused.error;
}

TEST_F(SightingsCommand, TellsWhatIsNotKept) {
  const std::string small = installation("small", "", "8MiB");
  const Ended unkept = import(small, log("log", 0, 10));
  EXPECT_EQ(unkept.exit_code, 1);
  EXPECT_TRUE(has(unkept.error, "not kept for a restart")) << unkept.error;
}

TEST_F(SightingsCommand, AsksTheProxyThatHasTheDirectory) {
  import(first, log("log", 0, 10));
  const auto held = PosixFileSystem::open_directory(path("first"));
  ASSERT_TRUE(held);
  const DeafPort port;
  const std::string admin = "127.0.0.1:" + std::to_string(port.number);
  const Ended unheard =
      run({"import", "--config", first.c_str(), "--admin", admin.c_str(), path("log").c_str()});
  EXPECT_EQ(unheard.exit_code, 1);
  EXPECT_TRUE(has(unheard.error, "the proxy that uses the directory, asked at " + admin))
      << unheard.error;
  EXPECT_FALSE(fs::exists(path("first/sightings-import.bits")));
  EXPECT_EQ(export_to(first, path("bits")).exit_code, 0) << "to look is always possible";
}

TEST_F(SightingsCommand, SaysWhatIsMissing) {
  const std::string bits = path("bits");
  const Ended unused = export_to(first, bits);
  EXPECT_EQ(unused.exit_code, 1);
  EXPECT_TRUE(has(unused.error, "no proxy has used it yet")) << unused.error;
  EXPECT_FALSE(fs::exists(bits));
  EXPECT_EQ(import(first, path("none")).exit_code, 1);
  fs::remove_all(path("first"));
  const Ended gone = import(first, log("log", 0, 10));
  EXPECT_EQ(gone.exit_code, 1);
  EXPECT_TRUE(has(gone.error, "it is not there: make it first")) << gone.error;
}

TEST_F(SightingsCommand, RefusesBadUsage) {
  const std::string memory_only = installation("memory", "", "0");
  const std::string never = installation("never", "policy = \"never\"\n");
  const std::string faulty = installation("faulty", "expected_keyz = 1\n");
  const char* const config = first.c_str();
  const std::vector<std::pair<std::vector<const char*>, const char*>> cases{
      {{}, "sightings needs export or import"},
      {{"inport", "--config", config}, "neither export nor import"},
      {{"export"}, "--config FILE is missing"},
      {{"export", "--config", config, "more"}, "--out says which"},
      {{"export", "--config", config, "--host", "a"}, "--host is of import"},
      {{"export", "--config", memory_only.c_str()}, "kept on disk only"},
      {{"export", "--config", never.c_str()}, "policy = \"never\""},
      {{"import", "--config", config}, "import what?"},
      {{"import", "--config", config, "--host", "a b", "x"}, "is no host"},
      {{"import", "--config", config, "--force", "x"}, "are of export"},
      {{"import", "--config", faulty.c_str(), "x"}, "expected_keyz"},
      {{"import", "--bogus"}, "bogus"},
  };
  for (const auto& [arguments, reason] : cases) {
    const Ended refused = run(arguments);
    EXPECT_EQ(refused.exit_code, 2) << reason;
    EXPECT_TRUE(has(refused.error, reason)) << refused.error;
  }
  const Ended help = run({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_TRUE(has(help.out, "usage: secondsight sightings export")) << help.out;
}

}  // namespace
}  // namespace secondsight::proxy
