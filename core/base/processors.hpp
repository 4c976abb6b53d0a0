#pragma once

#include <bitset>
#include <cstddef>
#include <span>
#include <string>

/// Processors that the ranks of a node may run on, and how they share them.
namespace mylos {

using Processors = std::bitset<4096>;

/// Those that this process may run on now.
Processors allowed_processors();
/// Those that it could be allowed: what its container or job has of the node.
Processors available_processors();

/// "0-3,8"
std::string to_string(const Processors& processors);

/// OMP_NUM_THREADS, or 0 where it is not set; a list ("4,2") counts by its first. Errors: std::runtime_error where it
/// is not a number of threads.
std::size_t threads_from_environment();

/// Threads of a rank: the processors it may run on, divided among those that may run on any of them; at least one.
/// `allowed`: of the ranks of a node.
std::size_t share_of_processors(std::span<const Processors> allowed, std::size_t rank_of_node);

/// How many of the node's ranks there are for each processor that this rank may run on, counting those that may run on
/// any of them; rounded up.
std::size_t ranks_a_processor(std::span<const Processors> allowed, std::size_t rank_of_node);

/// Errors: std::runtime_error where ranks of a node are tied to fewer processors than they are, while it has others
/// that nobody may use. `ranks`: which ranks of the world they are.
void check_pinning(std::span<const Processors> allowed, const Processors& available, std::span<const std::size_t> ranks,
                   const std::string& host);

/// This machine's CPU as its kernel tells it, in x86's words or ARM's: what timings that are kept depend on.
std::string processor_name();
/// The same for people: "AMD EPYC 7763 64-Core Processor"; all of it where the kernel knows no such name.
std::string processor_model();

}  // namespace mylos
