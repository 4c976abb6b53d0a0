#pragma once

#include <string>

namespace mylos {

/// The name of the machine this process runs on, "localhost" where it has none.
std::string host_name();

/// By the system's clock.
double seconds_since_1970();

}  // namespace mylos
