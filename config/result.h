#pragma once
#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

namespace secondsight {

/// What every function returns that can fail for reasons outside the program. The family Asio,
/// Beast and URL already speak, made [[nodiscard]] (Boost 1.81's own is not).
template <class T = void>
class [[nodiscard]] Result : public boost::system::result<T> {
 public:
  using boost::system::result<T>::result;
};

}  // namespace secondsight
