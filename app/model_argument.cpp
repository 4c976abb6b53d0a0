#include "app/model_argument.hpp"

#include "app/standard_output.hpp"
#include "app/usage_error.hpp"
#include "data/bert_config.hpp"
#include "data/model_names.hpp"

#include <fmt/format.h>

namespace mylos::app {

void resolve_model_argument(Arguments& arguments) {
  resolve_model_argument(arguments, [](const std::string& line) { log_line(line); });
}

void resolve_model_argument(Arguments& arguments, const train::Notice& notice) {
  train::SquadConfig& squad = arguments.run.squad;
  squad.model = data::resolve_model(arguments.model);
  const std::size_t positions = data::read_bert_config(squad.model / "config.json").max_position_embeddings;
  if (squad.max_length <= positions) return;
  if (!arguments.given.contains("max-length")) {
    // As run_qa: the default is no more than the model takes. What the user asked for is never changed.
    notice(fmt::format("{} has {} positions: --max-length is {}", arguments.model, positions, positions));
    squad.max_length = positions;
    return;
  }
  throw UsageError(fmt::format("--max-length {}: expected at most {}, the positions that {} has", squad.max_length,
                               positions, arguments.model));
}

}  // namespace mylos::app
