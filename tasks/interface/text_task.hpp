#pragma once

#include "core/base/error.hpp"
#include "core/base/notice.hpp"
#include "tasks/interface/loaded_model.hpp"
#include "tasks/interface/task.hpp"
#include "train/engine/samples/sampler.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace mylos::tasks {

/// A task on texts, whose samples are cut at start and shuffled in each epoch, or taken in a recorded order.
class TextTask : public Task {
 public:
  const LoadedModel& loaded() const { return loaded_; }
  /// Returns the rows of each training sample. Requires training data.
  virtual std::vector<std::size_t> lengths() const = 0;

  const nn::Model& model() const final { return loaded_.network(); }
  void read_weight_headers(const FileReader& files) const override {
    loaded_.files().read_weight_headers(files, loaded_.text().naming);
  }
  const train::ModelExporter* exporter() const final { return loaded_.exporter(); }
  std::optional<AttentionUse> attention() const final { return loaded_.attention(); }
  void set_attention(AttentionKernel kernel) final { loaded_.set_attention(kernel); }
  std::string adapted_model() const final { return loaded_.adapted_model(); }
  std::string model_text() const final { return loaded_.text().text; }

  std::size_t steps_per_epoch() const final {
    return !order_.empty() ? order_.size() : sampler_ ? sampler_->steps_per_epoch() : 0;
  }
  std::vector<std::size_t> global_batch(std::size_t step) const final {
    return order_.empty() ? sampler_->batch(step) : order_[step % order_.size()];
  }

 protected:
  /// Errors: std::invalid_argument if `max_length` exceeds the model's positions, whatever the data.
  TextTask(const RunConfig& run, Notice notice, LoadedModel loaded, std::size_t max_length)
      : configured_(run.task), notice_(std::move(notice)), loaded_(std::move(loaded)), seed_(run.engine.seed) {
    require(max_length <= loaded_.text().positions,
            fmt::format("--max-length {}: the model has {} positions", max_length, loaded_.text().positions));
  }

  /// Shuffles so many training samples.
  void shuffle(std::size_t samples) {
    sampler_ = std::make_unique<train::EpochSampler>(samples, configured_.batch, seed_, configured_.train_fraction);
  }

  TaskConfig configured_;
  Notice notice_;
  LoadedModel loaded_;
  std::vector<std::vector<std::size_t>> order_;  ///< samples of each step, if read from a file

 private:
  std::uint64_t seed_;
  std::unique_ptr<train::EpochSampler> sampler_;
};

}  // namespace mylos::tasks
