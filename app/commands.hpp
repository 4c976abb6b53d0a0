#pragma once

#include "app/arguments.hpp"
#include "app/options.hpp"

#include <cstddef>
#include <span>
#include <string_view>

/// The commands of the program: what each is called, takes and does.
namespace mylos::app {

struct Command {
  std::string_view name;
  unsigned bit = 0;            ///< CommandBit; 0 where it has no options
  std::string_view arguments;  ///< of the usage line, after the name
  std::string_view summary;
  std::size_t least_positional = 0;
  std::size_t most_positional = 0;
  int (*run)(const Arguments&) = nullptr;  ///< returns the exit code; null where this version does not have it
  bool runs_on_ranks = false;              ///< together, or each for itself without harm
};

std::span<const Command> commands();

/// The command called `name`, or null.
const Command* find_command(std::string_view name);

// One file each. They throw UsageError (exit 2) and std::runtime_error (exit 1).
int run_train(const Arguments& arguments);
int run_eval(const Arguments& arguments);
int run_ask(const Arguments& arguments);
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
