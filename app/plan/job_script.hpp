#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// The text of a job script for one run.
namespace mylos::app {

struct Job {
  std::size_t nodes = 1;
  std::size_t ranks_per_node = 1;
  std::size_t threads = 1;   ///< CPUs of a rank
  bool gpus = false;         ///< each rank has one
  double walltime = 3600.0;  ///< seconds
  std::string model, train;  ///< train is empty: the script asks for it
  std::string mode, precision, communicator;
  std::string checkpoints;  ///< of --checkpoint-every; empty: the script's own
  std::string options;      ///< more of train, divided at spaces
};

/// jobscripts/slurm/requeue.sbatch or, for "pbs", jobscripts/pbs/resubmit.pbs, with what the job is written into its
/// lines. Errors: std::logic_error where the installed script has lost a line.
std::string job_script(std::string_view scheduler, const Job& job);

/// `word` as a shell takes it for one.
std::string shell_word(std::string_view word);

}  // namespace mylos::app
