# shellcheck shell=bash disable=SC2034
# Functions and variables shared by the scripts in this folder. Source this file; do not run it.
# Sets -euo pipefail, `root` (the source tree) and `cache` (things that are built once and kept across build trees).

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cache=${MYLOS_PREFIX:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/mylos}

# clang-tidy for scripts/lint, from PyPI. Since version 21 it skips third-party headers and takes a quarter of the time.
tidy_version=23.1.4
clang_tidy=$cache/clang-tidy-$tidy_version/clang_tidy/data/bin/clang-tidy

# TensorBoard from PyPI, which tests use to read event files.
tensorboard_version=2.21.0
tensorboard=$cache/tensorboard

say() { printf '%s\n' "$@"; }

# Prints one line on stderr and ends the script with exit code 1.
die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# quietly WHAT COMMAND...: prints WHAT and runs the command. Prints its output only if it fails.
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

# expect WHAT EXIT_CODE PATTERN COMMAND...: checks the command's exit code, and that stdout or stderr matches the pattern.
# Writes into the caller's folder `work`, and sets `failed` to 1 if it does not hold.
# shellcheck disable=SC2154
expect() {
  local what=$1 code=$2 pattern=$3 rc=0
  shift 3
  "$@" >"$work/output" 2>&1 || rc=$?
  if [ "$rc" = "$code" ] && grep -qE -- "$pattern" "$work/output"; then
    say "passed: $what"
  else
    failed=1
    say "FAILED: $what: exit code $rc, expected $code; output, which should match '$pattern':"
    head -n 20 "$work/output"
  fi
}

# Prints the number of compile jobs: one per core, limited to one per 1.5 GiB of memory; MYLOS_JOBS overrides it.
jobs() {
  local cores memory_kib
  cores=$(nproc)
  memory_kib=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
  local fit=$((memory_kib / 1572864))
  [ "$fit" -ge 1 ] || fit=1
  say "${MYLOS_JOBS:-$((cores < fit ? cores : fit))}"
}

# run_ctest PRESET ARGUMENTS...: runs ctest in build/PRESET and prints tests that did not pass, and a summary. Returns 0 if none failed.
# Two tests run at a time per core, because launchers, watchdogs and job scripts mostly wait.
run_ctest() {
  local build=$root/build/$1 rc=0 most=10000000 # bytes of a test's output in the report
  shift
  rm -f "$build/junit.xml"
  (cd "$build" && ctest --output-on-failure --test-output-size-passed $most --test-output-size-failed $most --no-tests=error \
    --output-junit junit.xml -j $((2 * $(nproc))) "$@") \
    >"$build/test.log" 2>&1 || rc=1
  if [ ! -s "$build/junit.xml" ]; then
    tail -n 60 "$build/test.log" >&2
    die "ctest wrote no report; its log: $build/test.log"
  fi
  [ $rc = 0 ] || grep -v -E '^ *[0-9]+/[0-9]+ Test .*( Passed|\*\*\*Skipped) |^ +Start +[0-9]+: ' "$build/test.log" || true
  python3 "$root/scripts/report_tests.py" "$build/junit.xml" || rc=1
  return $rc
}
