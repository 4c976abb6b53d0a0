#pragma once

#include <bitset>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

/// CPU affinity: the processors that the ranks of a node may run on, and their distribution among ranks.
namespace mylos {

using Processors = std::bitset<4096>;

/// Returns the processors in this process' current affinity mask.
Processors allowed_processors();
/// Returns the largest affinity mask this process could get: the processors of its container or job on this node.
Processors available_processors();

/// Formats the processors as "0-3,8".
std::string to_string(const Processors& processors);

/// Returns OMP_NUM_THREADS, or 0 if it is not set; for a list ("4,2"), its first element. Errors: std::runtime_error if
/// it is not a valid number of threads.
std::size_t threads_from_environment();

/// Returns the number of threads per rank: the processors of this rank's mask divided by the number of ranks whose
/// masks overlap it, at least 1. `allowed` has one mask for each rank of the node.
std::size_t share_of_processors(std::span<const Processors> allowed, std::size_t rank_of_node);

/// Returns the number of ranks whose masks overlap this rank's mask, divided by the processors of the mask, rounded up.
std::size_t ranks_a_processor(std::span<const Processors> allowed, std::size_t rank_of_node);

/// Checks that ranks of a node are not pinned to fewer processors than there are ranks while other processors stay
/// unused. `ranks` are their ranks in the world. Errors: std::runtime_error.
void check_pinning(std::span<const Processors> allowed, const Processors& available, std::span<const std::size_t> ranks,
                   const std::string& host);

/// The threads of other processes that run or wait for a processor, and the processors of this node.
struct NodeLoad {
  std::size_t others = 0;
  std::size_t processors = 0;
};
/// Returns the least of a few looks, because many threads run for a moment only. `own` are the processes that do not
/// count. `proc` is /proc or a stand-in. Returns zeros if the system does not say.
NodeLoad node_load(std::span<const long> own, const std::filesystem::path& proc = "/proc");
/// Returns "9 threads of other programs on 2 processors" if there are more of them than processors, else "".
std::string busy_text(const NodeLoad& load);

/// Identifies this machine's CPU by the fields of /proc/cpuinfo (x86 or ARM), as a key for cached timings.
std::string processor_name();
/// The instruction sets of this CPU that decide how libraries compute: "fma avx2 avx512f avx512_bf16" (x86) or "asimd
/// sve bf16" (ARM).
std::string vector_instructions();
/// The CPU's model name for users, such as "AMD EPYC 7763 64-Core Processor"; processor_name() if the kernel gives
/// none.
std::string processor_model();

}  // namespace mylos
