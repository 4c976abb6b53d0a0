# shellcheck shell=bash disable=SC2034
# Shared by the scripts in this folder; source it, do not run it.
# Sets -euo pipefail, `root` (the source tree) and `cache` (what is built once and outlives build trees).

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cache=${MYLOS_PREFIX:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/mylos}

# The clang-tidy of scripts/lint, from PyPI: since 21 it leaves foreign headers alone, and takes a quarter of the time.
tidy_version=23.1.4
clang_tidy=$cache/clang-tidy-$tidy_version/clang_tidy/data/bin/clang-tidy

# TensorBoard from PyPI, with which tests read event files.
tensorboard_version=2.21.0
tensorboard=$cache/tensorboard

say() { printf '%s\n' "$*"; }

# One line on stderr; the script ends with exit code 1.
die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# quietly WHAT COMMAND...: one line at the start; the command's output only when it fails.
quietly() {
  local what=$1 log
  shift
  log=$(mktemp "${TMPDIR:-/tmp}/mylos-log.XXXXXX")
  say "$what" >&2
  if ! "$@" >"$log" 2>&1; then
    tail -n 60 "$log" >&2
    die "failed: $what (the whole log: $log)"
  fi
  rm -f "$log"
}

# How many compile jobs to run: one per core, bounded by 1.5 GiB of memory each; MYLOS_JOBS overrides.
jobs() {
  local cores memory_kib
  cores=$(nproc)
  memory_kib=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
  local fit=$((memory_kib / 1572864))
  [ "$fit" -ge 1 ] || fit=1
  say "${MYLOS_JOBS:-$((cores < fit ? cores : fit))}"
}

# run_ctest PRESET ARGUMENTS...: runs ctest in build/PRESET, prints what did not pass and a closing line; returns 0 when none failed.
run_ctest() {
  local build=$root/build/$1 rc=0
  shift
  rm -f "$build/junit.xml"
  (cd "$build" && ctest --output-on-failure --no-tests=error --output-junit junit.xml -j "$(nproc)" "$@") \
    >"$build/test.log" 2>&1 || rc=1
  if [ ! -s "$build/junit.xml" ]; then
    tail -n 60 "$build/test.log" >&2
    die "ctest wrote no report; its log: $build/test.log"
  fi
  [ $rc = 0 ] || grep -v -E '^ *[0-9]+/[0-9]+ Test .*( Passed|\*\*\*Skipped) |^ +Start +[0-9]+: ' "$build/test.log" || true
  python3 "$root/scripts/report_tests.py" "$build/junit.xml" || rc=1
  return $rc
}
