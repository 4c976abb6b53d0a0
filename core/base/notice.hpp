#pragma once

#include <functional>
#include <string>

namespace mylos {

/// Receives one line for the user.
using Notice = std::function<void(const std::string&)>;

}  // namespace mylos
