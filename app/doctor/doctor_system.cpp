#include "app/doctor/doctor_system.hpp"

#include "app/doctor/doctor_files.hpp"
#include "app/doctor/doctor_gpus.hpp"
#include "core/base/quantities.hpp"
#include "data/huggingface/model_names.hpp"
#include "families/model_directory.hpp"
#include "tasks/task_kinds.hpp"
#include "train/engine/memory.hpp"

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

rlim_t limit_of(int resource) {
  rlimit limit{};
  // The cast is needed because glibc's C++ headers give the parameter its own type.
  const auto which = static_cast<decltype(RLIMIT_AS)>(resource);
  return ::getrlimit(which, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

bool is_below(rlim_t limit, std::size_t least) { return limit != RLIM_INFINITY && limit < least; }

std::string bytes_of_limit(rlim_t limit) { return bytes_text(static_cast<std::size_t>(limit)); }

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
       static_cast<double>(of_rank), Quantity::bytes}};
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

LimitFacts limit_facts() {
  return {.address_space = limit_of(RLIMIT_AS),
          .locked = limit_of(RLIMIT_MEMLOCK),
          .files = limit_of(RLIMIT_NOFILE),
          .stack = limit_of(RLIMIT_STACK),
          .file_size = limit_of(RLIMIT_FSIZE),
          .core = limit_of(RLIMIT_CORE),
          .has_infiniband = !names_below("/sys/class/infiniband").empty()};
}

Findings limit_findings(const LimitFacts& facts) {
  Findings findings;
  const auto warn = [&](const std::string& text, const char* advice) {
    findings.push_back({Level::warning, "limits", text, advice});
  };
  if (facts.address_space != RLIM_INFINITY) {
    warn(fmt::format(
             "address space is limited to {} (ulimit -v), which also counts memory that is reserved but not used",
             bytes_of_limit(facts.address_space)),
         "ulimit -v unlimited, and limit memory by the job's --mem");
  }
  if (facts.has_infiniband && is_below(facts.locked, one_gibibyte)) {
    warn(fmt::format("{} may be locked (ulimit -l), but InfiniBand locks the memory that it sends",
                     bytes_of_limit(facts.locked)),
         "ask the site for unlimited locked memory in jobs (memlock; PropagateResourceLimitsExcept=MEMLOCK)");
  }
  if (is_below(facts.files, 1024)) {
    warn(fmt::format("{} open files (ulimit -n)", facts.files), "ulimit -n 4096: MPI opens at least one for each rank");
  }
  if (is_below(facts.stack, one_mebibyte)) {
    warn(fmt::format("a stack of {} (ulimit -s)", bytes_of_limit(facts.stack)), "ulimit -s 8192");
  }
  if (facts.file_size != RLIM_INFINITY) {
    warn(fmt::format("files of at most {} (ulimit -f)", bytes_of_limit(facts.file_size)),
         "ulimit -f unlimited: a checkpoint of a model of 110 million parameters has 1.2 GiB");
  }
  const std::string cores =
      facts.core == 0 ? "no core files" : "a rank that crashes writes a core file of all its memory";
  findings.push_back({Level::ok, "limits", cores + " (ulimit -c)"});
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
    return {{Level::ok, "model", families::resolve_model(model).string()}};
  } catch (const std::exception& error) {
    return {{Level::error, "model", error.what()}};
  }
}

}  // namespace mylos::app
