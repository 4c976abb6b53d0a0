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
  std::string strategy = {}, precision = {};
  std::string checkpoints = {};  ///< value of --checkpoint-every; empty: the script's own default
  std::string options = {};      ///< further options of train, separated by spaces
  std::string sweep = {};        ///< directory of a sweep, whose points the script trains in place of the model
  std::size_t points = 0;        ///< of the sweep
};

/// Returns jobscripts/slurm/requeue.sbatch or, for "pbs", jobscripts/pbs/resubmit.pbs, with the values of the job
/// filled in. Errors: std::logic_error if an expected line is missing from the script.
std::string job_script(std::string_view scheduler, const Job& job);

/// Replaces the range of indices in the script of a sweep for Slurm, but not a limit after it ("%4"). PBS has it in the
/// command that submits the script, because a task that submits the script again is not an array.
void set_array(std::string& script, std::size_t points);

/// Returns `word`, quoted for a shell if necessary.
std::string shell_word(std::string_view word);

}  // namespace mylos::app
