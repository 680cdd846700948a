#include "proxy/disk_pool.h"

namespace secondsight::proxy {

DiskPool::DiskPool(unsigned threads, std::size_t queue_max) : queue_max_(queue_max) {
  threads_.reserve(threads);
  for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

DiskPool::~DiskPool() {
  stop();
}

void DiskPool::submit(std::unique_ptr<Job> job) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_stopping_ && queue_.size() < queue_max_) {
      queue_.push_back(std::move(job));
      change_.notify_one();
      return;
    }
  }
  job->refuse();
}

void DiskPool::work() {
  for (;;) {
    std::unique_lock lock(mutex_);
    change_.wait(lock, [this] { return is_stopping_ || !queue_.empty(); });
    if (is_stopping_) return;
    const std::unique_ptr<Job> job = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    job->run();
  }
}

void DiskPool::stop() {
  std::deque<std::unique_ptr<Job>> refused;
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    refused.swap(queue_);
    change_.notify_all();
  }
  for (const auto& job : refused) job->refuse();
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
}

}  // namespace secondsight::proxy
