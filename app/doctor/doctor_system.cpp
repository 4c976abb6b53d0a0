#include "app/doctor/doctor_checks.hpp"

#include "core/base/text/quantities.hpp"
#include "data/huggingface/model_names.hpp"
#include "families/model_directory.hpp"
#include "tasks/task_kinds.hpp"
#include "train/engine/memory/memory.hpp"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>

namespace mylos::app {
namespace {

constexpr std::size_t one_mebibyte = std::size_t{1} << 20, one_gibibyte = std::size_t{1} << 30;

/// A limit of `ulimit` that runs exceed if it is below `least`. {} in its text stands for the limit.
struct LimitRow {
  int resource;
  rlim_t least;
  const char *text, *advice;
};
constexpr LimitRow limits[] = {
    {RLIMIT_AS, RLIM_INFINITY,
     "address space is limited to {} (ulimit -v), which also counts memory that is reserved but not used",
     "ulimit -v unlimited, and limit memory by the job's --mem"},
    {RLIMIT_MEMLOCK, one_gibibyte, "{} may be locked (ulimit -l), but InfiniBand locks the memory that it sends",
     "ask the site for unlimited locked memory in jobs (memlock; PropagateResourceLimitsExcept=MEMLOCK)"},
    {RLIMIT_NOFILE, 1024, "{} open files (ulimit -n)", "ulimit -n 4096: MPI opens at least one for each rank"},
    {RLIMIT_STACK, one_mebibyte, "a stack of {} (ulimit -s)", "ulimit -s 8192"},
    {RLIMIT_FSIZE, RLIM_INFINITY, "files of at most {} (ulimit -f)",
     "ulimit -f unlimited: a checkpoint of a model of 110 million parameters has 1.2 GiB"}};

}  // namespace

MemoryFacts memory_facts(std::size_t ranks_of_node) {
  MemoryFacts facts{.available = train::available_host_memory(), .ranks_of_node = ranks_of_node};
  struct statvfs about {};
  if (::statvfs("/dev/shm", &about) == 0) facts.shared_available = about.f_bavail * about.f_frsize;
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::getline(file, facts.huge_pages);
  return facts;
}

Findings memory_findings(const MemoryFacts& facts) {
  // A model of 110 million parameters takes 1.7 GiB in float for values, gradients and AdamW's moments, without any
  // activations.
  constexpr std::size_t least = 3 * one_gibibyte, least_shared = 64 * one_mebibyte;
  const std::size_t of_rank = facts.available / std::max<std::size_t>(1, facts.ranks_of_node);
  const bool is_little = runs_on_host && of_rank < least;
  const std::string sharing =
      facts.ranks_of_node > 1 ? fmt::format(" for each of {} on the node", count_of(facts.ranks_of_node, "rank")) : "";
  Findings findings = {
      {is_little ? Level::warning : Level::ok, "memory", "{} are free" + sharing,
       is_little ? "request more memory (--mem), or start fewer ranks; mylos plan shows what a model needs" : "",
       std::vector{static_cast<double>(of_rank)}, Quantity::bytes}};
  if (facts.ranks_of_node > 1 && facts.shared_available < least_shared) {
    findings.push_back({Level::warning, "memory",
                        fmt::format("/dev/shm, through which MPI and NCCL communicate inside a node, has {} free",
                                    bytes_text(facts.shared_available)),
                        "give the container more (--shm-size, or bind the host's /dev/shm)"});
  }
  const std::size_t begin = facts.huge_pages.find('['), end = facts.huge_pages.find(']');
  if (begin != std::string::npos && end != std::string::npos && runs_on_host) {
    findings.push_back(
        {Level::ok, "memory", "transparent huge pages: " + facts.huge_pages.substr(begin + 1, end - begin - 1)});
  }
  return findings;
}

rlim_t system_limit(int resource) {
  rlimit limit{};
  // The cast is needed because glibc's C++ headers give the parameter its own type.
  const auto which = static_cast<decltype(RLIMIT_AS)>(resource);
  return ::getrlimit(which, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

Findings limit_findings(const std::function<rlim_t(int)>& limit_of, bool has_infiniband) {
  Findings findings;
  for (const LimitRow& row : limits) {
    const rlim_t limit = limit_of(row.resource);
    if (limit >= row.least || (row.resource == RLIMIT_MEMLOCK && !has_infiniband)) continue;
    const std::string text = row.resource == RLIMIT_NOFILE ? std::to_string(limit) : bytes_text(limit);
    findings.push_back({Level::warning, "limits", fmt::format(fmt::runtime(row.text), text), row.advice});
  }
  const bool has_cores = limit_of(RLIMIT_CORE) != 0;
  findings.push_back(
      {Level::ok, "limits",
       fmt::format("{} (ulimit -c)",
                   has_cores ? "a rank that crashes writes a core file of all its memory" : "no core files")});
  return findings;
}

Findings hdf5_findings(const std::string& version, bool is_parallel) {
  return {{Level::ok, "HDF5",
           is_parallel ? fmt::format("{}, parallel", version)
                       : fmt::format("{}, not parallel: this build runs as one process", version)}};
}

Findings cache_findings() {
  const std::string obstacle = data::cache_obstacle();
  if (obstacle.empty()) return {{Level::ok, "cache", data::cache_directory().string()}};
  return {{Level::warning, "cache", obstacle,
           "set XDG_CACHE_HOME to a writable directory: without it every run times matrix products anew, and mylos "
           "fetch fails"}};
}

Findings model_findings(const std::string& model) {
  if (model.empty()) return {};
  const tasks::TaskKind* kind = tasks::kind_of_known_model(model);
  if (kind != nullptr && kind->trains_by_name(model)) {
    return {{Level::ok, "model", model + ", from the initialiser"}};
  }
  try {
    return {{Level::ok, "model", families::resolve_model(FileReader(), model).string()}};
  } catch (const std::exception& error) {
    return {{Level::error, "model", error.what()}};
  }
}

}  // namespace mylos::app
