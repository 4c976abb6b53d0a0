#include "core/base/process/processors.hpp"

#include "core/base/error.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/text/quantities.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

namespace mylos {
namespace {

/// More threads than any node has. Beyond this OpenMP aborts, with its own message or none.
constexpr std::size_t most_threads = 1024;

struct FreeCpuSet {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};
using CpuSet = std::unique_ptr<cpu_set_t, FreeCpuSet>;

constexpr std::size_t cpu_set_bytes = CPU_ALLOC_SIZE(Processors().size());

std::string name_of(std::span<const std::size_t> ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

/// Returns the number of the node's ranks whose masks overlap this rank's mask, at least 1.
std::size_t sharers_of(std::span<const Processors> allowed, std::size_t rank_of_node) {
  const Processors& mine = allowed[rank_of_node];
  const auto sharers = static_cast<std::size_t>(
      std::count_if(allowed.begin(), allowed.end(), [&](const Processors& other) { return (other & mine).any(); }));
  return std::max<std::size_t>(1, sharers);
}

/// Counts the threads of the process that run or wait for a processor.
std::size_t runnable_threads(const std::filesystem::path& process) {
  std::size_t count = 0;
  std::error_code ended;
  for (const auto& thread : std::filesystem::directory_iterator(process / "task", ended)) {
    std::string line;  // "17 (name) R ...", in which the name may contain anything
    std::getline(std::ifstream(thread.path() / "stat"), line);
    const std::size_t name_end = line.rfind(')');
    if (name_end != std::string::npos && line.substr(name_end).starts_with(") R")) ++count;
  }
  return count;
}

std::size_t count_processors(const std::filesystem::path& stat) {
  std::size_t count = 0;
  std::ifstream file(stat);
  for (std::string line; std::getline(file, line);) {
    if (line.size() > 3 && line.starts_with("cpu") && line[3] != ' ') ++count;
  }
  return count;
}

}  // namespace

NodeLoad node_load(std::span<const long> own, const std::filesystem::path& proc) {
  constexpr int looks = 5;
  constexpr std::chrono::milliseconds between_looks(10);
  NodeLoad load{.processors = count_processors(proc / "stat")};
  for (int look = 0; look < looks; ++look) {
    if (look > 0) std::this_thread::sleep_for(between_looks);
    std::string averages;
    std::size_t runnable = 0, ours = 0;
    std::ifstream(proc / "loadavg") >> averages >> averages >> averages >> runnable;  // "0.2 0.1 0.1 9/140 4711"
    for (const long process : own) ours += runnable_threads(proc / std::to_string(process));
    const std::size_t others = runnable > ours ? runnable - ours : 0;
    load.others = look == 0 ? others : std::min(load.others, others);
    if (load.others <= load.processors) break;
  }
  return load;
}

std::string busy_text(const NodeLoad& load) {
  if (load.others <= load.processors || load.processors == 0) return {};
  return fmt::format("{} of other programs on {}", count_of(load.others, "thread"),
                     count_of(load.processors, "processor"));
}

Processors allowed_processors() {
  Processors allowed;
  const CpuSet set(CPU_ALLOC(allowed.size()));
  if (!set || ::sched_getaffinity(0, cpu_set_bytes, set.get()) != 0) {
    const std::size_t count = std::max(1u, std::thread::hardware_concurrency());
    for (std::size_t i = 0; i < std::min(count, allowed.size()); ++i) allowed.set(i);
    return allowed;
  }
  for (std::size_t i = 0; i < allowed.size(); ++i) allowed[i] = CPU_ISSET_S(i, cpu_set_bytes, set.get());
  return allowed;
}

Processors available_processors() {
  const CpuSet own(CPU_ALLOC(Processors().size())), all(CPU_ALLOC(Processors().size()));
  if (!own || !all || ::sched_getaffinity(0, cpu_set_bytes, own.get()) != 0) return allowed_processors();
  // Requests all processors for the calling thread, and then its own again: the kernel reduces the request to the
  // control group's set.
  CPU_ZERO_S(cpu_set_bytes, all.get());
  for (std::size_t i = 0; i < Processors().size(); ++i) CPU_SET_S(i, cpu_set_bytes, all.get());
  ::sched_setaffinity(0, cpu_set_bytes, all.get());
  const Processors available = allowed_processors();
  ::sched_setaffinity(0, cpu_set_bytes, own.get());
  return available;
}

std::string to_string(const Processors& processors) {
  std::vector<std::string> ranges;
  for (std::size_t begin = 0; begin < processors.size(); ++begin) {
    if (!processors[begin]) continue;
    std::size_t last = begin;
    while (last + 1 < processors.size() && processors[last + 1]) ++last;
    ranges.push_back(last == begin ? fmt::format("{}", begin) : fmt::format("{}-{}", begin, last));
    begin = last;
  }
  return fmt::format("{}", fmt::join(ranges, ","));
}

std::size_t threads_from_environment() {
  const char* value = std::getenv("OMP_NUM_THREADS");
  if (value == nullptr || *value == '\0') return 0;
  const std::string_view text(value);
  const std::string_view first = text.substr(0, text.find(','));
  std::size_t threads = 0;
  const auto [end, error] = std::from_chars(first.data(), first.data() + first.size(), threads);
  if (error == std::errc() && end == first.data() + first.size() && threads >= 1 && threads <= most_threads) {
    return threads;
  }
  fail(fmt::format("OMP_NUM_THREADS={}: expected a number of threads from 1 to {}", printable(text), most_threads));
}

std::size_t share_of_processors(std::span<const Processors> allowed, std::size_t rank_of_node) {
  const std::size_t sharers = sharers_of(allowed, rank_of_node);
  return std::max<std::size_t>(1, allowed[rank_of_node].count() / sharers);
}

std::size_t ranks_a_processor(std::span<const Processors> allowed, std::size_t rank_of_node) {
  const std::size_t processors = std::max<std::size_t>(1, allowed[rank_of_node].count());
  return (sharers_of(allowed, rank_of_node) + processors - 1) / processors;
}

void check_pinning(std::span<const Processors> allowed, const Processors& available, std::span<const std::size_t> ranks,
                   const std::string& host) {
  Processors used;
  for (const Processors& each : allowed) used |= each;
  const Processors unused = available & ~used;
  if (unused.none()) return;
  for (const Processors& mine : allowed) {
    std::vector<std::size_t> tied;
    for (std::size_t i = 0; i < allowed.size(); ++i) {
      if ((allowed[i] & ~mine).none()) tied.push_back(ranks[i]);
    }
    if (tied.size() <= mine.count()) continue;
    fail(
        fmt::format("{} on {} may run on processor{} {} only, while no rank may run on {}: start the ranks with more "
                    "processors each (srun --cpus-per-task=N; mpirun --bind-to none, or --map-by slot:PE=N)",
                    name_of(tied), host, mine.count() == 1 ? "" : "s", to_string(mine), to_string(unused)));
  }
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string name;
  for (std::string line; std::getline(file, line) && !line.empty();) {
    for (const char* key :
         {"model name", "cpu family", "model\t", "stepping", "CPU implementer", "CPU part", "cpu\t"}) {
      if (line.starts_with(key)) name += line.substr(line.find(':') + 1) + ";";
    }
  }
  return name;
}

std::string vector_instructions() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line) && !line.starts_with("flags") && !line.starts_with("Features")) {
  }
  std::istringstream words(line);
  const std::set<std::string> flags(std::istream_iterator<std::string>(words), {});
  std::string found;
  for (const char* flag : {"avx", "fma", "avx2", "avx512f", "avx512_bf16", "avx512_fp16", "amx_bf16", "amx_fp16",
                           "asimd", "asimdhp", "sve", "sve2", "bf16", "svebf16"}) {
    if (!flags.contains(flag)) continue;
    if (!found.empty()) found += ' ';
    found += flag;
  }
  return found;
}

std::string processor_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    if (line.starts_with("model name") && begin != std::string::npos) return line.substr(begin);
  }
  return processor_name();
}

}  // namespace mylos
