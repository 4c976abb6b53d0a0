#pragma once

#include "tests/support/temporary.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>

namespace mylos::tests {

/// Writes the files of a finished run of a task that the program does not have: its steps count images, and its
/// evaluations report a validation loss, a perplexity (smaller is better) and an accuracy in percent. Two steps of 96
/// images give 192 images per second; an epoch has 40 steps; the last evaluation gives 12.5 and 87.654.
inline void write_image_run(const std::filesystem::path& directory) {
  using nlohmann::json;
  const json metrics = {
      {{"name", "validation_loss"}, {"title", "Validation loss"}, {"unit", ""}, {"larger_is_better", false}},
      {{"name", "perplexity"}, {"title", "Perplexity"}, {"unit", ""}, {"larger_is_better", false}},
      {{"name", "accuracy"}, {"title", "Accuracy"}, {"unit", "%"}, {"larger_is_better", true}}};
  const json resolved = {{"steps", 2},           {"epochs", 0.05},     {"ranks", 1},
                         {"mode", "replicated"}, {"counts", "images"}, {"metrics", metrics}};
  write_file(directory / "run.json", json({{"resolved", resolved}, {"state", {{"finished", true}}}}).dump());
  std::string rows;
  for (const int step : {1, 2}) {
    const json of_step = {
        {"kind", "step"}, {"step", step},   {"loss", 3.0 - step}, {"groups", 6},        {"images", 96},
        {"seconds", 0.5}, {"memory", 1024}, {"sent", 0},          {"time", 1e9 + step}, {"images_per_second", 192.0}};
    const json of_evaluation = {{"kind", "evaluation"},
                                {"step", step},
                                {"validation_loss", 1.5},
                                {"perplexity", step == 1 ? 11.25 : 12.5},
                                {"accuracy", step == 1 ? 80.0 : 87.654},
                                {"seconds", 0.25},
                                {"best", true}};
    rows += of_step.dump() + "\n" + of_evaluation.dump() + "\n";
  }
  write_file(directory / "metrics.jsonl", rows);
  write_file(directory / "results.json", json({{"perplexity", 12.5}, {"accuracy", 87.654}}).dump());
}

}  // namespace mylos::tests
