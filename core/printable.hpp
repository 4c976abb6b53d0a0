#pragma once

#include <string>
#include <string_view>

namespace mylos {

/// `text` with control characters escaped and cut after 80 bytes, so that a hostile name cannot break a message.
std::string printable(std::string_view text);

}  // namespace mylos
