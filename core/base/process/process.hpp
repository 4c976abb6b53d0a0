#pragma once

#include <string>

namespace mylos {

/// Returns this machine's host name, or "localhost" if it has none.
std::string host_name();

/// Returns 16 hexadecimal digits that differ between calls, processes and machines.
std::string unique_key();

/// Returns the Unix time of the system clock, in seconds.
double seconds_since_1970();

}  // namespace mylos
