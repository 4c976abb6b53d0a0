#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// The text of a job script for one run.
namespace mylos::app {

struct Job {
  std::string name = "mylos";
  std::size_t nodes = 1;
  std::size_t ranks_per_node = 1;
  std::size_t threads = 1;   ///< CPUs of a rank
  bool gpus = false;         ///< each rank has one
  double walltime = 3600.0;  ///< seconds
  std::string command;       ///< "mylos train ..."
};

/// For "slurm" or "pbs". The run checkpoints five minutes before the walltime, and the job is queued again then, at
/// most ten times. What a site adds (account, partition) stands in a comment.
std::string job_script(std::string_view scheduler, const Job& job);

}  // namespace mylos::app
