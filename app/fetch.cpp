#include "data/huggingface/fetch.hpp"

#include "app/run_commands.hpp"
#include "core/base/text/standard_output.hpp"
#include "families/model_families.hpp"

#include <fmt/format.h>

/// mylos fetch: downloads a model or a data set into the cache and prints its path.
namespace mylos::app {

int run_fetch(const Arguments& arguments) {
  print(fmt::format("{}\n", data::fetch(arguments.positional.front(), log_line, families::find_model_family).string()));
  return 0;
}

}  // namespace mylos::app
