#include "admission/huge_memory.h"

#include <cstdint>
#include <limits>
#include <new>
#include <sys/mman.h>

namespace secondsight::admission {

HugeMemory::HugeMemory(std::size_t bytes) {
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) throw std::bad_alloc();
  size_bytes_ = (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  // mmap aligns to 4 KiB: take one huge page more and give the ends back.
  const std::size_t mapped_bytes = size_bytes_ + kHugePageBytes;
  void* const mapped =
      ::mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  char* const start = static_cast<char*>(mapped);
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(start) % kHugePageBytes;
  const std::size_t head_bytes = misaligned == 0 ? 0 : kHugePageBytes - misaligned;
  char* const aligned = start + head_bytes;
  if (head_bytes > 0) ::munmap(start, head_bytes);
  ::munmap(aligned + size_bytes_, kHugePageBytes - head_bytes);
  data_ = aligned;
  ::madvise(data_, size_bytes_, MADV_HUGEPAGE);  // advice: a refusal costs speed only
}

HugeMemory::~HugeMemory() {
  ::munmap(data_, size_bytes_);
}

}  // namespace secondsight::admission
