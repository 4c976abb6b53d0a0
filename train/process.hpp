#pragma once

#include <string>

namespace mylos::train {

/// The name of the machine this process runs on, "localhost" where it has none.
std::string host_name();

}  // namespace mylos::train
