#pragma once

#include "app/doctor/doctor_finding.hpp"
#include "app/doctor/doctor_ranks.hpp"
#include "parallel/launch/launcher.hpp"

#include <optional>
#include <span>
#include <string>

/// Whether MPI, the launcher and the batch system belong together.
namespace mylos::app {

/// What MPI says of itself.
struct MpiFacts {
  bool is_built = true;
  std::size_t ranks = 1;
  std::string library = {}, thread_level = {};
};

/// Of this process, by what its launcher told it.
Findings launch_findings(const MpiFacts& mpi, const parallel::Environment& environment);

/// The batch job; `remaining`: seconds until it is ended, where the scheduler tells.
Findings job_findings(const parallel::Environment& environment, std::optional<double> remaining);

/// Seconds that all ranks took to give each other 8 bytes, and `bytes`.
Findings exchange_findings(std::size_t ranks, std::size_t nodes, double shortest, double longer, std::size_t bytes);

Findings clock_findings(std::span<const ClockOffset> offsets);

/// Variables that change what MPI, NCCL, OpenMP and HDF5 do, as they are set here. `variables`: NAME=VALUE.
Findings environment_findings(std::span<const std::string> variables);

}  // namespace mylos::app
