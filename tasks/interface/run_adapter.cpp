#include "tasks/interface/run_adapter.hpp"

#include "core/base/error.hpp"
#include "core/base/setting_error.hpp"
#include "data/huggingface/pretrained.hpp"
#include "families/model_directory.hpp"
#include "families/model_families.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace mylos::tasks {
namespace {

namespace fs = std::filesystem;

std::vector<data::TensorSpec> specs_of(const ParameterTable& table, bool only_trained) {
  std::vector<data::TensorSpec> specs;
  for (const ParameterTensor& tensor : table.tensors()) {
    if (tensor.group.trainable || !only_trained) specs.push_back({tensor.name, tensor.shape});
  }
  return specs;
}

/// Returns the modules that a name of --lora-targets means: those of the family, or itself.
std::string target_of(const std::string& name, const families::TextModel& model) {
  const auto known = std::ranges::find(model.adapter_names, name, &families::AdapterName::name);
  return known == model.adapter_names.end() ? name : std::string(known->module);
}

/// Lets the adapters' run train the head whole.
void train_head(const AdapterTask& task, std::vector<std::string>& trained) {
  if (!task.head.empty() && std::ranges::count(trained, task.head) == 0) trained.emplace_back(task.head);
}

data::AdapterConfig config_of(const RunConfig& run, const families::TextModel& model, const AdapterTask& task) {
  const AdapterSettings& given = run.task.adapters;
  data::AdapterConfig config;
  config.file.clear();
  config.task_type = task.type;
  config.rank = given.rank;
  config.alpha = given.alpha.value_or(2.0 * static_cast<double>(given.rank));
  config.dropout = given.dropout;
  config.rslora = given.rslora;
  config.trained = given.trained;
  train_head(task, config.trained);
  if (stands_alone(given.targets[0])) {
    config.pattern = given.targets[0];
    return config;
  }
  for (const std::string& name : given.targets) {
    const std::string target = target_of(name, model);
    if (std::ranges::count(config.targets, target) == 0) config.targets.push_back(target);
  }
  return config;
}

/// Returns the directory of the adapter that --adapter names: that directory, or the best/ of a run's.
fs::path directory_of(const fs::path& given) {
  if (given.empty() || data::is_adapter_directory(given)) return given;
  const fs::path best = families::adapter_directory(given);
  ensure(!best.empty(),
         fmt::format("{}: neither an adapter (no {}) nor the output of a run with {}",
                     setting("adapter", given.string()), data::adapter_config_file, setting("lora-rank")));
  return best;
}

/// Returns a model's configuration as its family reads it, which copies saved by other versions share.
OrderedJson sizes_in(const fs::path& model) {
  const FileReader files;
  const data::ModelFamily& family = families::find_model_family(files, model);
  ensure(family.config_json != nullptr, fmt::format("{} is {}, which takes no adapters", model.string(), family.model));
  return family.config_json(data::PretrainedModel(files, model));
}

/// Errors: the adapter is for another task, or names a base in a directory that is another model.
void check_base(const data::AdapterConfig& config, const fs::path& adapter, const fs::path& model,
                std::string_view task_type) {
  ensure(config.task_type.empty() || config.task_type == task_type,
         fmt::format("{}: task_type is {}, but this task's is {}; give an adapter of this task",
                     (adapter / data::adapter_config_file).string(), config.task_type, task_type));
  if (config.base.empty() || model.empty()) return;  // a model of built-in sizes has no directory
  std::error_code unreadable;                        // then nothing is known of the base
  const fs::path base = fs::path(config.base) / "config.json", own = model / "config.json";
  if (!fs::exists(base, unreadable) || fs::equivalent(base, own, unreadable)) return;
  ensure(sizes_in(config.base) == sizes_in(model),
         fmt::format("{}: its base is {}, and {} is another model; give the base with {}",
                     (adapter / data::adapter_config_file).string(), config.base, model.string(), setting("model")));
}

/// Returns the modules that are trained whole. Errors: one has a tensor that is read in two places, which PEFT would
/// separate.
std::vector<std::string> trained_modules(const data::AdapterConfig& config, const ParameterTable& table,
                                         std::span<const data::TensorSpec> base) {
  std::vector<std::string> trained = data::trained_modules(config, data::modules_of(base));
  for (const ParameterTensor& tensor : table.tensors()) {
    const bool is_borrowed = std::ranges::any_of(
        table.units(), [&](const ParameterUnit& unit) { return std::ranges::count(unit.borrowed, tensor.unit) > 0; });
    ensure(!nn::is_in(trained, tensor) || !is_borrowed,
           fmt::format("{}: {} is also the weight of the output layer (tied embeddings), so an adapter cannot have its "
                       "own; leave it out",
                       data::key_text(config, "modules_to_save"), tensor.name));
  }
  return trained;
}

class AdapterExport final : public train::ModelExport {
 public:
  AdapterExport(const fs::path& directory, const OrderedJson& config, std::span<const data::TensorShape> weights)
      : writer_(directory, config, {}, weights, data::adapter_format()) {}

  void write(const ParameterTensor&, std::size_t, std::span<const float> values) override { writer_.write(values); }
  fs::path staged() const override { return writer_.staged(); }
  void finish() override { writer_.finish(); }
  void commit() override { writer_.commit(); }

 private:
  data::PretrainedWriter writer_;
};

}  // namespace

RunAdapter::RunAdapter(const FileReader& files, const RunConfig& run, const families::TextModel& model,
                       const AdapterTask& task, const Notice& notice)
    : directory_(directory_of(run.task.adapters.directory)) {
  if (!directory_.empty()) {
    config_ = data::read_adapter_config(files, directory_, notice);
    check_base(*config_, directory_, run.task.model, task.type);
    if (!run.task.train.empty()) train_head(task, config_->trained);  // else it would stay as drawn
  } else if (run.task.adapters.rank > 0) {
    config_ = config_of(run, model, task);
  }
  if (!exists() || run.task.model.empty()) return;
  // A relative path would mean another model to who loads the adapter in another directory.
  config_->base = fs::absolute(run.task.model).lexically_normal().string();
  if (!run.task.adapters.base.empty()) config_->base = run.task.adapters.base;
}

void RunAdapter::adapt(nn::Model& network) const {
  const std::vector<std::string> linear = nn::linear_modules(network.table());
  const std::vector<data::TensorSpec> base = specs_of(network.table(), false);
  const std::vector<data::AdapterTarget> targets = data::adapter_targets(*config_, linear);
  nn::Adapters adapters{.layers = {},
                        .dropout = static_cast<float>(config_->dropout),
                        .trained = trained_modules(*config_, network.table(), base)};
  data::adapter_tensors(*config_, targets, adapters.trained, base);  // checks the ranks
  for (const auto& [module, rank, scale] : targets) {
    adapters.layers.push_back({module, rank, static_cast<float>(scale)});
  }
  network.adapt(adapters);
}

std::unique_ptr<data::AdapterWeights> RunAdapter::weights(const FileReader& files,
                                                          const ParameterTable& network) const {
  if (directory_.empty()) return nullptr;
  return std::make_unique<data::AdapterWeights>(files, directory_, specs_of(network, true));
}

std::unique_ptr<data::MergedAdapter> RunAdapter::merged(const FileReader& files, const ParameterTable& network) const {
  const std::vector<data::TensorSpec> base = specs_of(network, false);
  trained_modules(*config_, network, base);  // checks them
  return std::make_unique<data::MergedAdapter>(files, directory_, *config_, nn::linear_modules(network), base);
}

AdapterExporter::AdapterExporter(data::AdapterConfig config, const ParameterTable& table)
    : config_(std::move(config)), count_(table.tensors().size()) {
  if (config_.pattern == "all-linear") {  // PEFT lists what this means for a model
    std::set<std::string> names;
    for (const std::string& module : nn::linear_modules(table)) names.insert(module.substr(module.rfind('.') + 1));
    config_.pattern.clear();
    config_.targets.assign(names.begin(), names.end());
  }
  weights_ = data::written_adapter_tensors(specs_of(table, true));
}

std::unique_ptr<train::ModelExport> AdapterExporter::start(const fs::path& directory, const train::ExportPart&) const {
  return std::make_unique<AdapterExport>(directory, data::adapter_config_json(config_), weights_);
}

}  // namespace mylos::tasks
