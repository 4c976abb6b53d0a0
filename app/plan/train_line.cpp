#include "app/plan/train_line.hpp"

#include "app/options/options.hpp"
#include "app/options/plan_options.hpp"
#include "app/plan/job_script.hpp"
#include "app/plan/plan_target.hpp"
#include "data/images/synthetic_images.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <optional>

namespace mylos::app {
namespace {

/// Returns the value as it is typed; nullopt if it is unset or a switch that is off.
std::optional<std::string> value_as_typed(const nlohmann::ordered_json& value) {
  if (value.is_null() || value == false) return {};
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  return value == true ? "" : value.dump();
}

}  // namespace

std::vector<TrainOption> train_options(const Arguments& arguments, const std::set<std::string, std::less<>>& names) {
  std::vector<TrainOption> options;
  for (const Option& option : option_table(*arguments.task)) {
    const bool is_shown = option.traits.is_shown || names.contains(option.name);
    if (!is_shown || !option.print || !option.belongs_to("train")) continue;
    if (const auto value = value_as_typed(option.print(arguments))) options.emplace_back(option.name, *value);
  }
  return options;
}

std::string typed_words(const TrainOption& option) {
  return fmt::format(" --{}{}{}", option.first, option.second.empty() ? "" : " ",
                     option.second.empty() ? "" : shell_word(option.second));
}

std::string data_path(const Arguments& arguments) {
  if (data::is_synthetic(arguments.data.string())) return arguments.data.string();
  return arguments.data.empty() ? "" : std::filesystem::absolute(arguments.data).lexically_normal().string();
}

std::string launched_line(const Arguments& arguments, const std::string& data_options,
                          const std::vector<TrainOption>& options) {
  const PlanArguments& target = *arguments.plan;
  const std::size_t of_node = target.gpus / target.nodes;
  const std::string gpus = target.gpu == "cpu" ? "" : fmt::format(" --gpus-per-node={}", of_node);
  std::string line = fmt::format("srun --mpi=pmix --nodes={} --ntasks-per-node={} --cpus-per-task={}{} mylos train",
                                 target.nodes, of_node, planned_threads(arguments), gpus);
  line += arguments.data.empty() ? " " + data_options : " --train " + shell_word(data_path(arguments));
  line += " --output run";
  for (const TrainOption& option : options) line += typed_words(option);
  return line;
}

}  // namespace mylos::app
