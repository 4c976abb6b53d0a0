#pragma once

#include "app/doctor/doctor_finding.hpp"

#include <sys/resource.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

/// Memory, limits of a process, HDF5, caches and models.
namespace mylos::app {

struct MemoryFacts {
  std::size_t available = 0;         ///< bytes, of the node or its control group
  std::size_t ranks_of_node = 1;     ///< that share it
  std::size_t shared_available = 0;  ///< bytes free in /dev/shm
  std::string huge_pages = {};       ///< "always [madvise] never"
};
MemoryFacts memory_facts(std::size_t ranks_of_node);
Findings memory_findings(const MemoryFacts& facts);

/// What `ulimit` sets, in bytes or numbers; RLIM_INFINITY where it sets none.
struct LimitFacts {
  rlim_t address_space = RLIM_INFINITY, locked = RLIM_INFINITY, files = RLIM_INFINITY, stack = RLIM_INFINITY,
         file_size = RLIM_INFINITY, core = 0;
  bool has_infiniband = false;
};
LimitFacts limit_facts();
Findings limit_findings(const LimitFacts& facts);

/// `version`: of the build, empty where it has none; `locking`: HDF5_USE_FILE_LOCKING, where it is set.
Findings hdf5_findings(const std::string& version, bool is_parallel, const std::optional<std::string>& locking);

/// Whether timings and models can be kept in the user's cache.
Findings cache_findings();

/// Whether --model means a model here.
Findings model_findings(const std::string& model);

}  // namespace mylos::app
