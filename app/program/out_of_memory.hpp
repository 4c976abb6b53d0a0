#pragma once

#include <optional>
#include <string>

/// Messages about allocations that failed.
namespace mylos::app {

/// Returns "out of memory (the address space is limited to 1.00 GiB: ulimit -v); ...", for `wanted` = "12.03 MiB for
/// mylos::values::layer.3" with that after "out of memory: ".
std::string out_of_memory_text(const std::string& wanted = {});

/// Returns that text where `message` has Kokkos' words about an allocation that failed, with what stands before them
/// ("rank 1: "), and `std::nullopt` elsewhere.
std::optional<std::string> translated_allocation_failure(const std::string& message);

/// Returns what a user is told where the system refuses a thread, with its `reason`.
std::string no_thread_text(const std::string& reason);

}  // namespace mylos::app
