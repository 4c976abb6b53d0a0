#pragma once

#include <optional>
#include <string>

/// Messages about failed allocations.
namespace mylos::app {

/// Returns "out of memory (the address space is limited to 1.00 GiB: ulimit -v); ...". `wanted`, such as "12.03 MiB for
/// mylos::values::layer.3", is inserted after "out of memory: ".
std::string out_of_memory_text(const std::string& wanted = {});

/// Returns that text if `message` contains Kokkos' message about a failed allocation, keeping a prefix ("rank 1: ");
/// otherwise `std::nullopt`.
std::optional<std::string> translated_allocation_failure(const std::string& message);

/// Returns the message for a thread that the system refused to start, with its `reason`.
std::string no_thread_text(const std::string& reason);

}  // namespace mylos::app
