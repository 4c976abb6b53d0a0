#pragma once

#include "app/doctor/doctor_finding.hpp"
#include "app/doctor/doctor_ranks.hpp"
#include "parallel/launch/launcher.hpp"

#include <optional>
#include <span>
#include <string>

/// Checks whether MPI, the launcher and the batch system fit together.
namespace mylos::app {

/// Properties of the MPI library.
struct MpiFacts {
  bool is_built = true;
  std::size_t ranks = 1;
  std::string library = {}, thread_level = {};
};

/// Checks this process against the variables that its launcher set.
Findings launch_findings(const MpiFacts& mpi, const parallel::Environment& environment);

/// Reports the batch job. `remaining` is the number of seconds until the job ends, if the scheduler reports it.
Findings job_findings(const parallel::Environment& environment, std::optional<double> remaining);

/// Reports an all-gather: `shortest` is its time in seconds for 8 bytes from each rank, `longer` for `bytes`.
Findings exchange_findings(std::size_t ranks, std::size_t nodes, double shortest, double longer, std::size_t bytes);

Findings clock_findings(std::span<const ClockOffset> offsets);

/// Reports variables that change the behaviour of MPI, NCCL, OpenMP and HDF5. `variables` holds NAME=VALUE entries.
Findings environment_findings(std::span<const std::string> variables);

}  // namespace mylos::app
