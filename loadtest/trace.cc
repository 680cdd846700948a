#include "loadtest/trace.h"

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <istream>

#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>

namespace secondsight::loadtest {
namespace {

namespace io = boost::iostreams;

constexpr std::size_t kKeyBytesMax = 1'024;
constexpr std::uint64_t kSizeBytesMax = std::uint64_t{1} << 40;  // 1 TiB: larger is a broken line
constexpr std::size_t kExampleBytesMax = 80;

template <class Number>
bool read_number(std::string_view text, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

/// A log line must not carry control bytes of an input file to the terminal.
std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, kExampleBytesMax)) {
    out += c >= 0x20 && c < 0x7f ? c : '?';
  }
  if (text.size() > kExampleBytesMax) out += "...";
  return out;
}

}  // namespace

std::string_view parse_trace_line(std::string_view line, SourceRequest& request) {
  const auto first = line.find(',');
  const auto last = line.rfind(',');
  if (first == std::string_view::npos || first == last) return "fewer than three fields";
  const std::string_view time = line.substr(0, first);
  const std::string_view key = line.substr(first + 1, last - first - 1);
  const std::string_view size = line.substr(last + 1);
  if (key.find(',') != std::string_view::npos) return "more than three fields";
  if (!read_number(time, request.time_seconds) || !(request.time_seconds >= 0)) {
    return "time is not a number from 0 up";
  }
  if (key.empty()) return "key is empty";
  // In a URL these would be dot segments, which clients and caches may remove.
  if (key == "." || key == "..") return "key is a dot segment";
  if (key.size() > kKeyBytesMax) return "key is longer than 1024 bytes";
  if (!read_number(size, request.size_bytes)) return "size is not a whole number from 0 up";
  if (request.size_bytes > kSizeBytesMax) return "size is above 1 TiB";
  request.key.assign(key);
  return {};
}

struct TraceReader::Input {
  std::ifstream file;
  io::filtering_istream stream;
};

TraceReader::TraceReader() : input_(std::make_unique<Input>()) {}
TraceReader::~TraceReader() = default;

Result<std::unique_ptr<TraceReader>> TraceReader::open(const std::string& path) {
  // An ifstream opens a directory without complaint.
  std::error_code status_error;
  if (std::filesystem::is_directory(path, status_error)) {
    return make_error_code(boost::system::errc::is_a_directory);
  }
  std::unique_ptr<TraceReader> reader(new TraceReader);
  Input& input = *reader->input_;
  errno = 0;
  input.file.open(path, std::ios::binary);
  if (!input.file) {
    const int reason = errno != 0 ? errno : EIO;
    return boost::system::error_code(reason, boost::system::system_category());
  }
  constexpr int kGzipMagic0 = 0x1f;
  const bool gzip = input.file.peek() == kGzipMagic0;
  input.file.clear();  // peeking at an empty file sets eof
  if (gzip) input.stream.push(io::gzip_decompressor());
  input.stream.push(input.file);
  return reader;
}

bool TraceReader::read_line() {
  std::getline(input_->stream, line_);
  // What was read of a line before the damage is not a line.
  if (input_->stream.bad()) {
    faults_.damaged = true;
    return false;
  }
  if (!input_->stream) return false;
  if (!line_.empty() && line_.back() == '\r') line_.pop_back();
  return true;
}

bool TraceReader::next(SourceRequest& request) {
  while (read_line()) {
    ++faults_.lines;
    if (line_.empty()) continue;
    if (faults_.lines == 1 && line_.starts_with("timestamp")) continue;
    const std::string_view fault = parse_trace_line(line_, request);
    if (fault.empty()) return true;
    ++faults_.bad_lines;
    if (faults_.examples.size() < TraceFaults::kExamplesMax) {
      faults_.examples.push_back("line " + std::to_string(faults_.lines) + ": " +
                                 std::string(fault) + ": " + printable(line_));
    }
  }
  return false;
}

}  // namespace secondsight::loadtest
