#pragma once

#include "app/options/arguments.hpp"

/// The functions of the commands. app/options/commands.hpp lists their names, arguments and options.
namespace mylos::app {

// One file each. Errors: UsageError (exit code 2) and std::runtime_error (exit code 1).
int run_train(const Arguments& arguments);
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
