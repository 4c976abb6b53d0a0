#include "app/plan/job_script.hpp"

#include "core/base/text/printable.hpp"

#include <fmt/format.h>
#include <job_script_texts.hpp>  // written by CMake from jobscripts/

#include <cmath>
#include <stdexcept>

namespace mylos::app {
namespace {

std::string clock(double seconds) {
  const auto minutes = static_cast<long long>(std::ceil(seconds / 60.0));
  return fmt::format("{:02}:{:02}:00", minutes / 60, minutes % 60);
}

std::size_t place_in(const std::string& script, const std::string& words) {
  const std::size_t position = script.find(words);
  if (position == std::string::npos) throw std::logic_error(fmt::format("job script: there is no \"{}\"", words));
  return position;
}

/// Replaces the rest of the line that starts with `beginning` by `value`.
void fill_line(std::string& script, const std::string& beginning, std::string_view value) {
  const std::size_t begin = place_in(script, "\n" + beginning) + 1 + beginning.size();
  script.replace(begin, script.find('\n', begin) - begin, value);
}

/// Sets the default in NAME=${NAME:-value}, which the environment still overrides. Without one, adds a line before the
/// script reads its functions, which have a default for each variable.
void fill_variable(std::string& script, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  const std::string beginning = fmt::format("{0}=${{{0}:-", name);
  const std::size_t found = script.find(beginning);
  if (found == std::string::npos) {
    script.insert(place_in(script, "\nPATH=$PATH:") + 1, fmt::format("{}{}}}\n", beginning, shell_word(value)));
    return;
  }
  const std::size_t begin = found + beginning.size();
  script.replace(begin, script.find('}', begin) - begin, shell_word(value));
}

void fill_resources(std::string& script, const Job& job, bool is_slurm) {
  if (!is_slurm) {
    const std::string gpus = job.gpus ? fmt::format(":ngpus={}", job.ranks_per_node) : "";
    fill_line(script, "#PBS -l select=",
              fmt::format("{}:ncpus={}:mpiprocs={}{}", job.nodes, job.ranks_per_node * job.threads, job.ranks_per_node,
                          gpus));
    fill_line(script, "#PBS -l walltime=", clock(job.walltime));
    return;
  }
  const auto fill = [&](const char* option, std::size_t value) {
    fill_line(script, fmt::format("#SBATCH --{}=", option), std::to_string(value));
  };
  fill("nodes", job.nodes);
  fill("ntasks-per-node", job.ranks_per_node);
  fill("cpus-per-task", job.threads);
  fill("gpus-per-node", job.gpus ? job.ranks_per_node : 0);
  fill_line(script, "#SBATCH --time=", clock(job.walltime));
}

/// Makes the script train the points of a sweep, whose settings have what variables of the script would set.
void fill_sweep(std::string& script, const Job& job, bool is_slurm) {
  const std::size_t comment = place_in(script, "\n#") + 1, lines = place_in(script, is_slurm ? "\n#SBATCH" : "\n#PBS");
  script.replace(comment, lines - comment,
                 fmt::format("# Trains the points of the sweep in {}. Written by mylos sweep, which keeps lines that\n"
                             "# are added for the site: its account, partition or queue, and modules.",
                             printable(job.sweep)));
  const std::size_t precision = place_in(script, "\nPRECISION=");
  script.erase(precision, script.find('\n', precision + 1) - precision);
  fill_variable(script, "SWEEP", job.sweep);
  if (!is_slurm) return fill_variable(script, "SCRIPT", job.sweep + "/sweep.pbs");
  fill_line(script, "#SBATCH --job-name=",
            fmt::format("mylos-sweep --output={}\n#SBATCH --array=", shell_word(job.sweep + "/logs/%a.out")));
  set_array(script, job.points);
}

}  // namespace

std::string job_script(std::string_view scheduler, const Job& job) {
  const bool is_slurm = scheduler == "slurm";
  std::string script = is_slurm ? requeue_sbatch : resubmit_pbs;
  fill_resources(script, job, is_slurm);
  if (!job.sweep.empty()) {
    fill_sweep(script, job, is_slurm);
    return script;
  }
  fill_variable(script, "MODEL", job.model);
  fill_variable(script, "TRAIN", job.train);
  fill_variable(script, "OUTPUT", "run");
  fill_variable(script, "MODE", job.strategy);
  fill_variable(script, "PRECISION", job.precision);
  fill_variable(script, "CHECKPOINT_EVERY", job.checkpoints);
  fill_variable(script, "OPTIONS", job.options);
  return script;
}

void set_array(std::string& script, std::size_t points) {
  constexpr std::string_view beginning = "\n#SBATCH --array=";
  const std::size_t begin = place_in(script, std::string(beginning)) + beginning.size();
  script.replace(begin, script.find_first_of("%\n", begin) - begin, fmt::format("0-{}", points - 1));
}

std::string shell_word(std::string_view word) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,:=+@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string_view::npos) return std::string(word);
  std::string quoted = "'";
  for (const char character : word) {
    if (character == '\'') {
      quoted += R"('\'')";
    } else {
      quoted += character;
    }
  }
  return quoted + "'";
}

}  // namespace mylos::app
