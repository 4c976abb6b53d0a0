#include "train/metrics_file.hpp"

#include <nlohmann/json.hpp>

namespace mylos::train {

using Json = nlohmann::ordered_json;

void MetricsFile::step(const StepReport& report) {
  const Json line = {{"step", report.step},
                     {"epoch", report.epoch},
                     {"loss", report.loss},
                     {"gradient_norm", report.gradient_norm},
                     {"learning_rate", report.learning_rate},
                     {"sequences", report.sequences},
                     {"tokens", report.tokens},
                     {"seconds", report.seconds},
                     {"tokens_per_second", report.tokens_per_second()},
                     {"memory", report.memory}};
  file_.append(line.dump() + "\n");
}

void MetricsFile::evaluation(const EvaluationReport& report) {
  Json line = {{"step", report.step}};
  for (const auto& [name, value] : report.metrics) line[name] = value;
  line["seconds"] = report.seconds;
  line["best"] = report.best;
  file_.append(line.dump() + "\n");
}

}  // namespace mylos::train
