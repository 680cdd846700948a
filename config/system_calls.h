#pragma once
#include <cstddef>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

namespace secondsight {

/// The system calls of PosixFileSystem, each as its manual page has it: -1 and errno, any of them
/// may be interrupted, reads and writes may be short. A test puts its own in their place.
/// Thread-safe.
class SystemCalls {
 public:
  virtual ~SystemCalls() = default;
  virtual int openat(int directory, const char* path, int flags, mode_t mode);
  virtual int unlinkat(int directory, const char* path);
  virtual int mkdir(const char* path, mode_t mode);
  virtual int stat(const char* path, struct stat& status);
  virtual int fstat(int descriptor, struct stat& status);
  virtual int fstatat(int directory, const char* path, struct stat& status);
  virtual int flock(int descriptor, int operation);
  virtual int fsync(int descriptor);
  virtual int fdatasync(int descriptor);
  virtual int fallocate(int descriptor, off_t size);
  virtual ssize_t preadv2(int descriptor, const iovec* pieces, int count, off_t offset, int flags);
  virtual ssize_t pwritev(int descriptor, const iovec* pieces, int count, off_t offset);

  static SystemCalls& of_kernel();
};

}  // namespace secondsight
