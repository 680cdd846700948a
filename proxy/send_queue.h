#pragma once
#include <cstddef>

#include "proxy/asio.h"

namespace secondsight::proxy {

/// Bytes written to the socket that its peer has not acknowledged; 0 when the kernel does not say.
/// Of two answers with no write between them the smaller one means progress, which no event tells:
/// a socket counts as writable only when a third of its buffer is free again, and that may take a
/// slow peer many times any timeout. One system call. Linux: SIOCOUTQ, tcp(7).
std::size_t unsent_bytes(tcp::socket& socket) noexcept;

}  // namespace secondsight::proxy
