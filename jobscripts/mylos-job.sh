#!/usr/bin/env bash
# What the job scripts share: their variables, and the functions mylos_train, mylos_requeue, mylos_resubmit and
# mylos_compare. It is installed beside mylos. A script sets what differs from the defaults below, sources this file as
# `. mylos-job.sh slurm` or `. mylos-job.sh pbs`, and calls one function. The job's environment takes precedence over
# the script, and the script over this file: MODEL=... sbatch ..., or qsub -v MODEL=...,... (qsub -V for all variables).
MODEL=${MODEL:-}             # a Hugging Face directory, or a name: bert-base-uncased, resnet50
TRAIN=${TRAIN:-}             # training data, or an .h5 file written by `mylos prepare`
DEV=${DEV:-}                 # evaluation data; empty: no evaluation
OUTPUT=${OUTPUT:-}           # the run's directory, on a file system shared by all nodes; in an array OUTPUT-index
PRECISION=${PRECISION:-float}  # A100, H100: bfloat16; V100: half; CPUs with AVX512-BF16 can use bfloat16
MODE=${MODE:-replicated}     # like DDP; sharded: like FSDP; hybrid: sharded within a node
TOTAL_BATCH_SIZE=${TOTAL_BATCH_SIZE:-} # samples per step on all ranks (--batch); empty: default
BATCH_SIZE_PER_DEVICE=${BATCH_SIZE_PER_DEVICE:-} # micro-batch per rank (--micro-batch); empty: chosen to fit
CHECKPOINT_EVERY=${CHECKPOINT_EVERY:-} # the most that a failed node can lose; empty: 10m
OPTIONS=${OPTIONS:-}         # further options of mylos train, such as "--epochs 3 --lr 1e-5"
SWEEP=${SWEEP:-}             # directory of `mylos sweep`, whose points an array trains in place of MODEL to OPTIONS
MYLOS=${MYLOS:-mylos}        # the program
LAUNCHER=${LAUNCHER:-}       # command that starts the ranks, with {n} for their number; empty: as below
MAX_RESTARTS=${MAX_RESTARTS:-10} # of mylos_requeue and mylos_resubmit
STOP_BEFORE=${STOP_BEFORE:-5m} # of mylos_resubmit: before the end of the walltime
WALLTIME=${WALLTIME:-${PBS_WALLTIME:-}} # of mylos_resubmit: as in the #PBS line, or in seconds; empty: query qstat
SCRIPT=${SCRIPT:-}           # of mylos_resubmit: path of the script, relative to the directory of the first qsub
QSUB=${QSUB:-qsub -V}        # of mylos_resubmit: command that submits the job again
RESTARTS=${RESTARTS:-0}      # of mylos_resubmit: number of restarts so far
MODES=${MODES:-replicated,sharded-gradients,sharded} RANKS=${RANKS:-1,2,4} # of mylos_compare; 2x4: nodes x ranks
REPEATS=${REPEATS:-5}        # of mylos_compare: runs per setting, whose median is reported

scheduler=$1 rc=0 first='' run='' crashed=''
if [ "$scheduler" = slurm ]; then
  name=${SLURM_JOB_NAME:-} index=${SLURM_ARRAY_TASK_ID:-} submit='NAME=... sbatch ...'
  LAUNCHER=${LAUNCHER:-srun --mpi=pmix --wait=60} # MPICH: "srun --mpi=pmi2"; or "mpirun --bind-to none"
  # Since Slurm 22.05, srun does not inherit it from sbatch. Threads, GPUs and rank placement follow from it.
  [ -z "${SLURM_CPUS_PER_TASK:-}" ] || export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
else
  name=${PBS_JOBNAME:-} index=${PBS_ARRAY_INDEX:-} submit='qsub -v NAME=...'
  # Ranks choose their processors themselves, so mpirun must not bind them to cores.
  LAUNCHER=${LAUNCHER:-mpirun --bind-to none -n {n\} -hostfile ${PBS_NODEFILE:-}}
  unset OMP_NUM_THREADS # PBS sets 1 or ncpus unless ompthreads is given; each rank chooses its number itself
fi

# die MESSAGE [CODE]: ends the job.
die() {
  echo "$name: $1" >&2
  exit "${2:-2}"
}

# need NAME...: ends the job if one of these variables is not set, or the program is not found.
need() {
  local each
  for each; do
    [ -n "${!each}" ] || die "$each is not set; submit with ${submit/NAME/$each}, or set it in the script"
  done
  command -v "$MYLOS" >/dev/null || die "$MYLOS is not found; load its module in the script, or set MYLOS"
}

# Prints the number of ranks of the job. On PBS a script may set ranks_per_node.
ranks() {
  [ "$scheduler" != slurm ] || { echo "$SLURM_NTASKS" && return; }
  [ -r "${PBS_NODEFILE:-}" ] || die "PBS_NODEFILE names no file; set LAUNCHER"
  if [ -n "${ranks_per_node:-}" ]; then
    echo $((ranks_per_node * $(sort -u "$PBS_NODEFILE" | wc -l)))
  else
    wc -l <"$PBS_NODEFILE" # a line for each of mpiprocs
  fi
}

# stripe DIRECTORY: on Lustre, creates the directory and distributes its files over four servers.
stripe() { ! command -v lfs >/dev/null || { mkdir -p "$1" && lfs setstripe -c 4 -S 4M "$1"; } || :; }

# Sets the options of mylos train to those of the variables.
run_settings() {
  need MODEL TRAIN OUTPUT
  output=$OUTPUT${index:+-$index}
  settings=(--model "$MODEL" --train "$TRAIN" ${DEV:+--dev "$DEV"} --output "$output" --precision "$PRECISION" \
    --mode "$MODE" ${CHECKPOINT_EVERY:+--checkpoint-every "$CHECKPOINT_EVERY"})
  read -r -a options <<<"${index:+--seed $index} ${TOTAL_BATCH_SIZE:+--batch $TOTAL_BATCH_SIZE} \
    ${BATCH_SIZE_PER_DEVICE:+--micro-batch $BATCH_SIZE_PER_DEVICE} $OPTIONS"
}

# Writes and prints the table of the sweep once all points are finished. Before that, a look at each run.json is enough.
sweep_table() {
  for config in "$SWEEP"/points/*.json; do grep -qs '"finished": *true' "${config%.json}/run.json" || return 0; done
  "$MYLOS" sweep "$SWEEP"
}

# Sets the options to those of the point of the sweep with the index of the array's task.
point_settings() {
  local config
  need # the program
  [ -n "$index" ] || die "SWEEP needs an array; \"mylos sweep $SWEEP\" prints how to submit it"
  for config in "$SWEEP/points/$(printf %03d "$index")"-*.json; do :; done
  [ -r "$config" ] || die "$SWEEP has no point $index"
  output=${config%.json} options=()
  settings=(--config "$config" --output "$output")
  trap sweep_table EXIT
}

# Prepares `launch`: checks the variables, and splits the launcher and the options into words.
prepare() {
  local n=''
  if [ -n "$SWEEP" ]; then point_settings; else run_settings; fi
  case $LAUNCHER in *'{n}'*) n=$(ranks) || exit ;; esac
  read -r -a launcher <<<"${LAUNCHER//\{n\}/$n}"
  # A run saves and ends on USR1. TERM and INT become USR1, because Open MPI's mpirun kills its ranks on them.
  trap 'stop 85' USR1 && trap 'stop 143' TERM && trap 'stop 130' INT
  export OMPI_MCA_odls_base_sigkill_timeout=${OMPI_MCA_odls_base_sigkill_timeout:-5} # s, if mpirun gets TERM, too
  stripe "$output"
  set -m # separate process group: Ctrl-C in a terminal reaches only this script
}
# Further signals are ignored, because bash can lose the exit code of a run that ends as one arrives.
stop() { caught=yes first=${first:-$1}; [ -z "$run" ] || { trap '' USR1 TERM INT; kill -USR1 "$run"; }; }
# launch [OPTION...]: trains on all ranks, with further options of mylos train. Sets rc to the exit code: if the run has
# saved, that of the first signal, which is 85 for USR1, 143 for TERM, 130 for INT.
launch() {
  "${launcher[@]}" "$MYLOS" train "${settings[@]}" "$@" "${options[@]}" </dev/null &
  run=$!
  [ -z "$first" ] || { sleep 1 && stop "$first"; } # it arrived too early; by now the launcher can handle it
  while caught='' && wait "$run"; rc=$? && [ -n "$caught" ]; do :; done # signals interrupt wait
  run=''
  [ "$rc" != 85 ] || rc=${first:-85}
}

# Trains. If the run fails or is stopped, the job ends with its exit code.
mylos_train() {
  prepare
  launch
  [ "$rc" = 0 ] || exit "$rc"
}

latest() { find "$output/checkpoints" -name 'step-*.h5' 2>/dev/null | sort -V | tail -n 1; }
begun() { stat -c %y "$output/run.json" 2>/dev/null; } # rewritten by every run

# launch_again NOT RESTARTS [OPTION...]: as launch, but returns only if the job should be started again. Otherwise it
# ends the job, and says why it is NOT started again.
launch_again() {
  local not=$1 restarts=$2 before was try
  shift 2
  before=$(latest) was=$(begun)
  for try in 1 2; do # retry if a rank crashed before the run began, as Open MPI's MPI_Init under srun sometimes does
    launch "$@"
    crashed=$rc/$first/$(begun)
    [ "$crashed/$try" = "139//$was/1" ] || break
    echo "$name: a rank crashed before the run began; started once more" >&2
  done
  # 85: saved, run again. Other codes except these four: a rank or node died; continue from the last checkpoint.
  case $rc/$first in 0/* | 2/* | 130/* | 143/* | */130 | */143) exit "$rc" ;; esac
  [ "$crashed" = "139/85/$was" ] || [ "$(latest)" != "$before" ] ||
    die "not $not: exit code $rc, and no step further than ${before:-the start}" "$rc"
  [ "$restarts" -lt "$MAX_RESTARTS" ] || die "not $not: MAX_RESTARTS=$MAX_RESTARTS reached" "$rc"
}

# Trains longer than a job may last: once the run has saved, Slurm starts the job again, with the same number.
mylos_requeue() {
  local CHECKPOINT_EVERY=${CHECKPOINT_EVERY:-10m}
  prepare
  launch_again requeued "${SLURM_RESTART_COUNT:-0}"
  [ -z "$index" ] || SLURM_JOB_ID=${SLURM_ARRAY_JOB_ID}_$index # the last task of an array has the ID of the array
  scontrol requeue "$SLURM_JOB_ID" || die "could not be requeued; submit it again" "$rc"
}

# The same on PBS: the run saves STOP_BEFORE the end of the walltime, and the job submits SCRIPT again.
mylos_resubmit() {
  local qsub index=${INDEX:-$index} CHECKPOINT_EVERY=${CHECKPOINT_EVERY:-10m}
  prepare
  [ -r "$SCRIPT" ] || die "$PWD/$SCRIPT is not there to be submitted again; submit from its directory, or set SCRIPT"
  launch_again 'submitted again' "$RESTARTS" --stop-before "$STOP_BEFORE" ${WALLTIME:+--walltime "$WALLTIME"}
  export RESTARTS=$((RESTARTS + 1)) INDEX=$index # the restart of an array's task is a job of its own
  read -r -a qsub <<<"$QSUB"
  "${qsub[@]}" "$SCRIPT" || die "could not be submitted again; do it by hand" "$rc"
}

# Compares sharding strategies with the training job used in the literature, which the recipe is: SQuAD v1.1, 10,000
# training and 500 validation examples, 4 epochs, 4 sequences per rank. OPTIONS override its settings.
mylos_compare() {
  local options
  need MODEL TRAIN DEV OUTPUT
  read -r -a options <<<"$OPTIONS"
  stripe "$OUTPUT"
  exec "$MYLOS" compare --model "$MODEL" --train "$TRAIN" --dev "$DEV" --output "$OUTPUT" --precision "$PRECISION" \
    --recipe lightning-ddp-squad --modes "$MODES" --ranks "$RANKS" --repeats "$REPEATS" --launcher "$LAUNCHER" \
    "${options[@]}"
}
