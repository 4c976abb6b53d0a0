#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// Generates the job script for one run.
namespace mylos::app {

struct Job {
  std::size_t nodes = 1;
  std::size_t ranks_per_node = 1;
  std::size_t threads = 1;             ///< CPUs per rank
  bool gpus = false;                   ///< whether each rank has one
  double walltime = 3600.0;            ///< seconds
  std::string model = {}, train = {};  ///< empty `train`: the script asks for the file
  std::string mode = {}, precision = {};
  std::string checkpoints = {};  ///< value of --checkpoint-every; empty: the script's own default
  std::string options = {};      ///< further options of train, separated by spaces
};

/// Returns jobscripts/slurm/requeue.sbatch or, for "pbs", jobscripts/pbs/resubmit.pbs, with the values of the job
/// filled in. Errors: std::logic_error if an expected line is missing from the script.
std::string job_script(std::string_view scheduler, const Job& job);

/// Returns `word`, quoted for a shell if necessary.
std::string shell_word(std::string_view word);

}  // namespace mylos::app
