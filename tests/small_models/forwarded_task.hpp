#pragma once

#include "train/engine/task.hpp"

namespace mylos::small_models {

/// A task of type Base that forwards to another, which must outlive it. Classes that derive from it replace a part.
template <class Base = train::Task>
class ForwardedTask : public Base {
 public:
  explicit ForwardedTask(train::Task& task) : task_(task) {}

  const nn::Model& model() const override { return task_.model(); }
  void initial_values(const FileReader& files, const train::TensorWriter& write) const override {
    task_.initial_values(files, write);
  }
  std::size_t steps_per_epoch() const override { return task_.steps_per_epoch(); }
  std::vector<std::size_t> global_batch(std::size_t step) const override { return task_.global_batch(step); }
  train::WorkKind work() const override { return task_.work(); }
  std::size_t rows_of(std::size_t sample) const override { return task_.rows_of(sample); }
  double weight(std::span<const std::size_t> samples) const override { return task_.weight(samples); }
  void assemble(std::size_t step, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                Batch& batch) const override {
    task_.assemble(step, samples, ids, batch);
  }
  train::Evaluation* evaluation() const override { return task_.evaluation(); }
  void write_results(const std::filesystem::path& directory) const override { task_.write_results(directory); }
  const train::ModelExporter* exporter() const override { return task_.exporter(); }

 protected:
  train::Task& task_;
};

}  // namespace mylos::small_models
