#include "proxy/log_reader.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <istream>
#include <limits>

#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>

namespace secondsight::proxy {
namespace {

namespace io = boost::iostreams;

constexpr std::size_t kExampleBytesMax = 80;

/// An input's control bytes are not for the terminal.
std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, kExampleBytesMax)) out += c >= 0x20 && c < 0x7f ? c : '?';
  if (text.size() > kExampleBytesMax) out += "...";
  return out;
}

}  // namespace

void LogFaults::add(std::string_view reason, std::string_view line) {
  ++bad_lines;
  if (examples.size() == kExamplesMax) return;
  examples.push_back("line " + std::to_string(lines) + ": " + std::string(reason) + ": " +
                     printable(line));
}

struct LogReader::Input {
  std::ifstream file;
  io::filtering_istream stream;
};

LogReader::LogReader() : input_(std::make_unique<Input>()), buffer_(kLineBytesMax + 1) {}
LogReader::~LogReader() = default;

Result<std::unique_ptr<LogReader>> LogReader::open(const std::string& path) {
  std::unique_ptr<LogReader> reader(new LogReader);
  // An ifstream opens a directory without complaint.
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return make_error_code(boost::system::errc::is_a_directory);
  auto& file = reader->input_->file;
  errno = 0;
  // Not std::cin, which takes byte by byte what stdio may want, too.
  file.open(path == "-" ? "/dev/stdin" : path, std::ios::binary);
  if (!file) {
    const int reason = errno != 0 ? errno : EIO;
    return boost::system::error_code(reason, boost::system::system_category());
  }
  constexpr int kGzipMagic0 = 0x1f;
  const bool is_gzip = file.peek() == kGzipMagic0;
  file.clear();  // peeking at an empty file sets eof
  if (is_gzip) reader->input_->stream.push(io::gzip_decompressor());
  reader->input_->stream.push(file);
  return reader;
}

bool LogReader::read_line() {
  auto& stream = input_->stream;
  stream.getline(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  const auto got = static_cast<std::size_t>(stream.gcount());
  if (stream.bad()) {  // what was read of a line before the damage is no line
    faults_.is_damaged = true;
    return false;
  }
  is_too_long_ = stream.fail() && got == buffer_.size() - 1;
  if (is_too_long_) {
    stream.clear();
    stream.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    faults_.is_damaged = stream.bad();
  } else if (stream.fail()) {
    return false;
  }
  // Behind a line that ends, getline counts the end, too.
  line_ = {buffer_.data(), got - (stream.eof() || is_too_long_ ? 0 : 1)};
  if (line_.ends_with('\r')) line_.remove_suffix(1);
  return true;
}

bool LogReader::next(admission::LoggedRequest& request) {
  while (read_line()) {
    ++faults_.lines;
    if (line_.empty()) {
      ++faults_.empty_lines;
      continue;
    }
    const std::string_view reason =
        is_too_long_ ? "longer than 64 KiB" : admission::parse_access_line(line_, request);
    if (reason.empty()) return true;
    faults_.add(reason, line_);
  }
  return false;
}

void LogReader::refuse(std::string_view reason) {
  faults_.add(reason, line_);
}

}  // namespace secondsight::proxy
