#include "proxy/log_merge.h"

#include <algorithm>
#include <utility>

namespace secondsight::proxy {

Result<> LogMerge::open(const std::string& path) {
  auto reader = LogReader::open(path);
  if (!reader) return reader.error();
  Log log;
  log.path = path;
  log.reader = std::move(*reader);
  logs_.push_back(std::move(log));
  return {};
}

void LogMerge::run(LogSightings& sightings) {
  std::vector<Log*> queue;  // a heap, the earliest first
  const auto is_later = [](const Log* a, const Log* b) { return a->next.time > b->next.time; };
  for (Log& log : logs_)
    if (log.reader->next(log.next)) queue.push_back(&log);
  std::make_heap(queue.begin(), queue.end(), is_later);
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), is_later);
    Log& log = *queue.back();
    const std::string_view reason = sightings.add(log.next);
    if (!reason.empty()) log.reader->refuse(reason);
    if (log.reader->next(log.next))
      std::push_heap(queue.begin(), queue.end(), is_later);
    else
      queue.pop_back();
  }
}

}  // namespace secondsight::proxy
