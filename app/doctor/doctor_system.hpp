#pragma once

#include "app/doctor/doctor_finding.hpp"

#include <sys/resource.h>

#include <cstddef>
#include <filesystem>
#include <string>

/// Checks memory, process limits, HDF5, caches and models.
namespace mylos::app {

struct MemoryFacts {
  std::size_t available = 0;         ///< bytes available on the node, or in its control group
  std::size_t ranks_of_node = 1;     ///< ranks that share this memory
  std::size_t shared_available = 0;  ///< free bytes in /dev/shm
  std::string huge_pages = {};       ///< "always [madvise] never"
};
MemoryFacts memory_facts(std::size_t ranks_of_node);
Findings memory_findings(const MemoryFacts& facts);

/// The limits of `ulimit`, in bytes or counts; RLIM_INFINITY if unlimited.
struct LimitFacts {
  rlim_t address_space = RLIM_INFINITY, locked = RLIM_INFINITY, files = RLIM_INFINITY, stack = RLIM_INFINITY,
         file_size = RLIM_INFINITY, core = 0;
  bool has_infiniband = false;
};
LimitFacts limit_facts();
Findings limit_findings(const LimitFacts& facts);

/// `version`: HDF5 version of the build, empty if it has none.
Findings hdf5_findings(const std::string& version, bool is_parallel);

/// Checks whether the user's cache can store timings and models.
Findings cache_findings();

/// Checks whether --model names a model that exists here.
Findings model_findings(const std::string& model);

}  // namespace mylos::app
