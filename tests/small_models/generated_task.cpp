#include "tests/small_models/generated_task.hpp"

#include "data/files.hpp"
#include "data/safetensors.hpp"
#include "train/row_pieces.hpp"

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
  std::vector<data::TensorShape> tensors;
  std::vector<const ParameterRow*> rows;
  for (const ParameterRow& row : model_->table().rows()) rows.push_back(&row);
  for (const ParameterRow& row : model_->table().state_rows()) rows.push_back(&row);
  for (const ParameterRow* row : rows) tensors.push_back({row->name, row->shape});
  data::StagedDirectory staged(directory);
  data::SafetensorsWriter writer(staged.path() / file_name, tensors);
  for (const ParameterRow* row : rows) {
    train::read_in_pieces(read_row, row->name, row->size, [&](std::span<const float> values) { writer.write(values); });
  }
  writer.commit();
  staged.commit();
}

}  // namespace mylos::small_models
