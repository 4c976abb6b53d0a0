#include "tests/small_models/generated_task.hpp"

#include "core/base/files.hpp"
#include "data/huggingface/safetensors.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <numeric>

namespace mylos::small_models {
namespace {

constexpr const char* file_name = "model.safetensors";

std::vector<data::TensorShape> tensors_of(const ParameterTable& table) {
  std::vector<data::TensorShape> tensors;
  for (const ParameterTensor& row : table.tensors()) tensors.push_back({row.name, row.shape});
  for (const ParameterTensor& row : table.state_tensors()) tensors.push_back({row.name, row.shape});
  return tensors;
}

class SafetensorsExport final : public train::ModelExport {
 public:
  SafetensorsExport(const std::filesystem::path& directory, const ParameterTable& table)
      : staged_(directory), writer_(staged_.path() / file_name, tensors_of(table)) {}

  void write(const ParameterTensor&, std::size_t, std::span<const float> values) override { writer_.write(values); }
  void commit() override {
    writer_.commit();
    staged_.commit();
  }

 private:
  StagedDirectory staged_;
  data::SafetensorsWriter writer_;
};

}  // namespace

std::unique_ptr<train::ModelExport> SafetensorsExporter::start(const std::filesystem::path& directory,
                                                               const train::ExportPart&) const {
  return std::make_unique<SafetensorsExport>(directory, table_);
}

void GeneratedEvaluation::take(std::size_t index, std::span<const float> outputs, std::span<const float> losses) {
  if (index == 0) loss_ = correct_ = 0.0;
  loss_ += std::accumulate(losses.begin(), losses.end(), 0.0);
  correct_ += correct(index, outputs);
}

std::span<const train::MetricKind> GeneratedEvaluation::kinds() const {
  static const std::array<train::MetricKind, 2> kinds = {
      {{"validation_loss", "Validation loss", "", false}, {"accuracy", "Accuracy"}}};
  return kinds;
}

train::Metrics GeneratedEvaluation::score() {
  metrics_ = {{"validation_loss", loss_ / weight()}, {"accuracy", correct_ / weight()}};
  return metrics_;
}

GeneratedTask::GeneratedTask(std::unique_ptr<nn::Model> model, std::size_t samples, std::size_t batch,
                             std::uint64_t seed, std::filesystem::path start)
    : model_(std::move(model)), exporter_(model_->table()), sampler_(samples, batch, seed), start_(std::move(start)) {}

void GeneratedTask::initial_values(const train::TensorWriter& write) const {
  if (start_.empty()) return;
  const data::SafetensorsFile file(start_ / file_name);
  for (const data::TensorInfo& tensor : file.tensors()) write(tensor.name, file.read_float(tensor.name));
}

void GeneratedTask::write_results(const std::filesystem::path& directory) const {
  nlohmann::ordered_json scores;
  for (const auto& [name, value] : evaluation_->metrics()) scores[name] = value;
  write_text(directory / "scores.json", scores.dump() + "\n");
}

}  // namespace mylos::small_models
