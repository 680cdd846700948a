#include "config/system_calls.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace secondsight {

int SystemCalls::openat(int directory, const char* path, int flags, mode_t mode) {
  return ::openat(directory, path, flags, mode);
}
int SystemCalls::unlinkat(int directory, const char* path) {
  return ::unlinkat(directory, path, 0);
}
int SystemCalls::mkdir(const char* path, mode_t mode) {
  return ::mkdir(path, mode);
}
int SystemCalls::stat(const char* path, struct stat& status) {
  return ::stat(path, &status);
}
int SystemCalls::fstat(int descriptor, struct stat& status) {
  return ::fstat(descriptor, &status);
}
int SystemCalls::fstatat(int directory, const char* path, struct stat& status) {
  return ::fstatat(directory, path, &status, AT_SYMLINK_NOFOLLOW);
}
int SystemCalls::flock(int descriptor, int operation) {
  return ::flock(descriptor, operation);
}
int SystemCalls::fsync(int descriptor) {
  return ::fsync(descriptor);
}
int SystemCalls::fdatasync(int descriptor) {
  return ::fdatasync(descriptor);
}
int SystemCalls::fallocate(int descriptor, off_t size) {
  return ::fallocate(descriptor, 0, 0, size);
}
ssize_t SystemCalls::preadv2(int descriptor, const iovec* pieces, int count, off_t offset,
                             int flags) {
  return ::preadv2(descriptor, pieces, count, offset, flags);
}
ssize_t SystemCalls::pwritev(int descriptor, const iovec* pieces, int count, off_t offset) {
  return ::pwritev(descriptor, pieces, count, offset);
}

SystemCalls& SystemCalls::of_kernel() {
  static SystemCalls calls;
  return calls;
}

}  // namespace secondsight
