#include "app/job_script.hpp"

#include <fmt/format.h>

#include <cmath>

namespace mylos::app {
namespace {

std::string clock(double seconds) {
  const auto minutes = static_cast<long long>(std::ceil(seconds / 60.0));
  return fmt::format("{:02}:{:02}:00", minutes / 60, minutes % 60);
}

/// Slurm keeps a job's number when it queues it again, and counts.
std::string slurm_script(const Job& job) {
  const std::string gpus = job.gpus ? fmt::format("#SBATCH --gpus-per-node={}\n", job.ranks_per_node) : "";
  return fmt::format(R"(#!/usr/bin/env bash
#SBATCH --job-name={name}
#SBATCH --nodes={nodes}
#SBATCH --ntasks-per-node={ranks}
#SBATCH --cpus-per-task={threads}
{gpus}#SBATCH --time={time}
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output={name}.%j.log
# Add what your site asks for: #SBATCH --account=... --partition=...
set -euo pipefail
max_restarts=${{MAX_RESTARTS:-10}}
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK

# Exit code 85: checkpointed before the walltime; the same command goes on from there.
rc=0
srun --mpi=pmix --wait=60 --cpus-per-task="$SLURM_CPUS_PER_TASK" {command} --stop-before 5m || rc=$?
if [ "$rc" = 85 ] && [ "${{SLURM_RESTART_COUNT:-0}}" -lt "$max_restarts" ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$rc"
)",
                     fmt::arg("name", job.name), fmt::arg("nodes", job.nodes), fmt::arg("ranks", job.ranks_per_node),
                     fmt::arg("threads", job.threads), fmt::arg("gpus", gpus), fmt::arg("time", clock(job.walltime)),
                     fmt::arg("command", job.command));
}

/// qrerun is often forbidden: the script submits itself again.
std::string pbs_script(const Job& job) {
  const std::string gpus = job.gpus ? fmt::format(":ngpus={}", job.ranks_per_node) : "";
  return fmt::format(R"(#!/usr/bin/env bash
#PBS -N {name}
#PBS -l select={nodes}:ncpus={cpus}:mpiprocs={ranks}{gpus}
#PBS -l walltime={time}
#PBS -j oe
# Add what your site asks for: #PBS -A ... -q ...; submit as {name}.pbs from its directory.
set -euo pipefail
cd "$PBS_O_WORKDIR"
restart=${{RESTART:-0}} max_restarts=${{MAX_RESTARTS:-10}}
export OMP_NUM_THREADS={threads}

# Exit code 85: checkpointed before the walltime; the same command goes on from there.
rc=0
mpirun --bind-to none -n {all} -hostfile "$PBS_NODEFILE" {command} --walltime {time} --stop-before 5m || rc=$?
if [ "$rc" = 85 ] && [ "$restart" -lt "$max_restarts" ]; then
  qsub -v RESTART=$((restart + 1)),MAX_RESTARTS="$max_restarts" "$PBS_O_WORKDIR/{name}.pbs"
fi
exit "$rc"
)",
                     fmt::arg("name", job.name), fmt::arg("nodes", job.nodes),
                     fmt::arg("cpus", job.ranks_per_node * job.threads), fmt::arg("ranks", job.ranks_per_node),
                     fmt::arg("gpus", gpus), fmt::arg("time", clock(job.walltime)), fmt::arg("threads", job.threads),
                     fmt::arg("all", job.nodes * job.ranks_per_node), fmt::arg("command", job.command));
}

}  // namespace

std::string job_script(std::string_view scheduler, const Job& job) {
  return scheduler == "slurm" ? slurm_script(job) : pbs_script(job);
}

}  // namespace mylos::app
