#include "app/run_commands.hpp"
#include "core/base/standard_output.hpp"
#include "tasks/question_answering/score_predictions.hpp"

/// mylos score: the metrics of a data set's official script.
namespace mylos::app {

int run_score(const Arguments& arguments) {
  print(tasks::score_predictions(arguments.positional[0], arguments.positional[1], arguments.run, arguments.sources,
                                 log_line));
  return 0;
}

}  // namespace mylos::app
