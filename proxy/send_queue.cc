#include "proxy/send_queue.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

namespace secondsight::proxy {

std::size_t unsent_bytes(tcp::socket& socket) noexcept {
  int bytes = 0;
  if (::ioctl(socket.native_handle(), SIOCOUTQ, &bytes) != 0 || bytes < 0) return 0;
  return static_cast<std::size_t>(bytes);
}

}  // namespace secondsight::proxy
