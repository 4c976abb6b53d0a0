#include "tests/small_models/generated_task.hpp"

#include "data/files.hpp"
#include "data/safetensors.hpp"

#include <nlohmann/json.hpp>

namespace mylos::small_models {
namespace {

constexpr const char* file_name = "model.safetensors";

}  // namespace

GeneratedTask::GeneratedTask(std::unique_ptr<nn::Model> model, std::size_t samples, std::size_t batch,
                             std::uint64_t seed, std::filesystem::path start)
    : model_(std::move(model)), sampler_(samples, batch, seed), start_(std::move(start)) {}

void GeneratedTask::initial_values(const train::RowWriter& write) const {
  if (start_.empty()) return;
  const data::SafetensorsFile file(start_ / file_name);
  for (const data::TensorInfo& tensor : file.tensors()) write(tensor.name, file.read_float(tensor.name));
}

void GeneratedTask::write_results(const std::filesystem::path& directory) const {
  nlohmann::ordered_json scores;
  for (const auto& [name, value] : last_metrics_) scores[name] = value;
  data::write_text(directory / "scores.json", scores.dump() + "\n");
}

void GeneratedTask::export_model(const std::filesystem::path& directory, const train::RowReader& read_row) const {
  std::vector<std::vector<float>> values;
  std::vector<data::NamedTensor> tensors;
  const auto add = [&](const ParameterRow& row) {
    values.emplace_back(row.size);
    read_row(row.name, values.back());
    tensors.push_back({row.name, row.shape, values.back()});
  };
  for (const ParameterRow& row : model_->table().rows()) add(row);
  for (const ParameterRow& row : model_->table().state_rows()) add(row);
  data::StagedDirectory staged(directory);
  data::write_safetensors(staged.path() / file_name, tensors);
  staged.commit();
}

}  // namespace mylos::small_models
