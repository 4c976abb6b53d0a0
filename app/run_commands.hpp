#pragma once

#include "app/options/arguments.hpp"

#include <functional>

/// The functions of the commands. app/options/commands.hpp lists their names, arguments and options.
namespace mylos::app {

// One file each. Errors: UsageError (exit code 2) and std::runtime_error (exit code 1).
int run_train(const Arguments& arguments);
/// Does the same on ranks that a launcher started, each of which calls `parse` after MPI has started. They take the
/// small files that this reads from copies of the first rank (on_all_ranks_with_copies). Until then a rank waits at
/// most `collective_timeout` seconds for others.
int run_launched_train(double collective_timeout, const std::function<Arguments()>& parse);
int run_eval(const Arguments& arguments);
int run_ask(const Arguments& arguments);
int run_generate(const Arguments& arguments);
int run_classify(const Arguments& arguments);
int run_score(const Arguments& arguments);
int run_tokenize(const Arguments& arguments);
int run_prepare(const Arguments& arguments);
int run_fetch(const Arguments& arguments);
int run_info(const Arguments& arguments);
int run_bench(const Arguments& arguments);
int run_compare(const Arguments& arguments);
int run_report(const Arguments& arguments);
int run_watch(const Arguments& arguments);
int run_doctor(const Arguments& arguments);
int run_plan(const Arguments& arguments);
int run_checkpoint(const Arguments& arguments);

}  // namespace mylos::app
