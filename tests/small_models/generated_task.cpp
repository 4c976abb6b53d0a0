#include "tests/small_models/generated_task.hpp"

#include "core/base/files/files.hpp"
#include "data/huggingface/safetensors.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
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

/// Predicts the samples after those of training, in batches of a few.
class GeneratedTask::GeneratedEvaluation final : public train::Evaluation {
 public:
  GeneratedEvaluation(GeneratedTask& task, const GeneratedSamples& samples)
      : task_(task), first_(samples.training), count_(samples.evaluated) {}

  std::size_t batches() const override { return (count_ + batch_size - 1) / batch_size; }
  BatchShape largest_batch() const override {
    BatchShape largest;
    for (std::size_t index = 0; index < batches(); ++index) {
      std::size_t rows = 0;
      for (const std::size_t sample : samples_of(index)) {
        rows += task_.rows_of(sample);
        largest.longest = std::max(largest.longest, task_.rows_of(sample));
      }
      largest.rows = std::max(largest.rows, rows);
      largest.samples = std::max(largest.samples, samples_of(index).size());
    }
    return largest;
  }
  void assemble(std::size_t index, Batch& batch) const override {
    const std::vector<std::size_t> samples = samples_of(index), ids = numbers_from(0, samples.size());
    task_.GeneratedTask::assemble(0, samples, std::vector<std::uint32_t>(ids.begin(), ids.end()), batch);
  }
  void take(std::size_t index, std::span<const float> outputs, std::span<const float> losses) override {
    if (index == 0) loss_ = correct_ = 0.0;
    loss_ += std::accumulate(losses.begin(), losses.end(), 0.0);
    correct_ += task_.correct(samples_of(index), outputs);
  }
  train::Metrics score() override {
    const double weight = task_.weight(numbers_from(first_, count_));
    return task_.metrics_ = {{"validation_loss", loss_ / weight}, {"accuracy", correct_ / weight}};
  }
  std::span<const train::MetricKind> kinds() const override {
    static const std::array<train::MetricKind, 2> kinds = {
        {{"validation_loss", "Validation loss", "", false}, {"accuracy", "Accuracy"}}};
    return kinds;
  }

 private:
  static constexpr std::size_t batch_size = 6;

  std::vector<std::size_t> samples_of(std::size_t index) const {
    return numbers_from(first_ + index * batch_size, std::min(batch_size, count_ - index * batch_size));
  }

  GeneratedTask& task_;
  std::size_t first_, count_;
  double loss_ = 0.0, correct_ = 0.0;  ///< over the batches since the first one
};

std::vector<std::size_t> numbers_from(std::size_t first, std::size_t count) {
  std::vector<std::size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

GeneratedTask::GeneratedTask(std::unique_ptr<nn::Model> model, const GeneratedSamples& samples)
    : model_(std::move(model)),
      exporter_(model_->table()),
      sampler_(samples.training, samples.batch, samples.seed),
      start_(samples.start) {
  if (samples.evaluated > 0) evaluation_ = std::make_unique<GeneratedEvaluation>(*this, samples);
}

void GeneratedTask::initial_values(const FileReader& files, const train::TensorWriter& write) const {
  if (start_.empty()) return;
  const data::SafetensorsFile file(files, start_ / file_name);
  for (const data::TensorInfo& tensor : file.tensors()) write(tensor.name, file.read_float(tensor.name));
}

void GeneratedTask::assemble(std::size_t, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                             Batch& batch) const {
  std::vector<std::size_t> lengths;
  for (const std::size_t sample : samples) lengths.push_back(rows_of(sample));
  batch.reset(lengths, ids);
  fill(samples, batch);
}

std::string GeneratedTask::scores() const {
  nlohmann::ordered_json scores;
  for (const auto& [name, value] : metrics_) scores[name] = value;
  return scores.dump(2) + "\n";
}

void GeneratedTask::write_results(const std::filesystem::path& directory) const {
  write_text(directory / "scores.json", scores());
}

}  // namespace mylos::small_models
