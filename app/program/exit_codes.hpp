#pragma once

#include <optional>
#include <string>

/// Exit codes of the program, and the reporting of errors.
namespace mylos::app {

inline constexpr int success = 0, failure = 1, usage = 2;

/// For exception handlers: prints the current exception as one line that begins with `who`, and returns the exit code
/// for its type. Prints nothing if `prints` is false, because another process does.
int report_exception(bool prints = true, const std::string& who = {});

/// Returns "out of memory (the address space is limited to 1.00 GiB: ulimit -v); ...". `wanted`, such as "12.03 MiB for
/// mylos::values::layer.3", is inserted after "out of memory: ".
std::string out_of_memory_text(const std::string& wanted = {});

/// Returns that text if `message` contains Kokkos' message about a failed allocation, keeping a prefix ("rank 1: ");
/// otherwise `std::nullopt`.
std::optional<std::string> translated_allocation_failure(const std::string& message);

}  // namespace mylos::app
