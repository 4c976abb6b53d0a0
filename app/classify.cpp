#include "app/options/commands.hpp"
#include "app/program/compute.hpp"
#include "app/program/model_argument.hpp"
#include "app/run_commands.hpp"
#include "core/base/printable.hpp"
#include "core/base/standard_output.hpp"
#include "core/base/unicode.hpp"
#include "tasks/image_classification/image_classifier.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <vector>

/// mylos classify: the likeliest labels of images.
namespace mylos::app {
namespace {

std::string labels_json(const std::string& file, const std::vector<tasks::LikelyLabel>& likely) {
  nlohmann::ordered_json labels = nlohmann::ordered_json::array();
  for (const auto& [label, probability] : likely) labels.push_back({{"label", label}, {"probability", probability}});
  return nlohmann::ordered_json({{"file", file}, {"labels", labels}}).dump() + "\n";
}

std::string labels_text(const std::string& file, const std::vector<tasks::LikelyLabel>& likely) {
  std::string text = printable(file) + "\n";
  for (const auto& [label, probability] : likely) {
    text += fmt::format("  {:6.2f} %  {}\n", 100.0 * probability, printable(label));
  }
  return text;
}

}  // namespace

int run_classify(const Arguments& configured) {
  Arguments arguments = configured;
  for (const std::string& file : arguments.positional) ensure_utf8(file, "the name of a picture");
  take_run_settings(*find_command("classify"), arguments);
  resolve_model_argument(arguments);
  const ComputeScope compute;
  check_precision(arguments.run.engine.precision, arguments.run.engine.gemm.tf32);
  const std::vector<std::filesystem::path> files(arguments.positional.begin(), arguments.positional.end());
  const auto likely = tasks::classify_images(arguments.run, files, log_line);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string& file = arguments.positional[i];
    arguments.json ? print_json_text(labels_json(file, likely[i])) : print(labels_text(file, likely[i]));
  }
  flush_output();
  return 0;
}

}  // namespace mylos::app
