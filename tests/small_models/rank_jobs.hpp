#pragma once

#include "train/engine/loop/trainer.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

/// Small runs that are repeated on several ranks and in several modes.
namespace mylos::small_models {

struct Job {
  std::string name;
  std::function<std::unique_ptr<train::Task>()> make;
  train::TrainConfig config;
  std::size_t micro_batch;
};

/// Returns BERT, ResNet, which has state tensors, Llama, and BERT with frozen tensors, with batches that
/// no number of ranks divides and samples of different lengths. `common` is what their configurations share.
std::vector<Job> uneven_jobs(const train::TrainConfig& common);

/// Returns a Llama with biases, norms of heads, and a window.
Job windowed_job(const train::TrainConfig& common);

/// Returns the first of them in half, with a loss scale that is too large for its first steps.
Job half_job(const train::TrainConfig& common);

/// Records the losses of a run.
class LossLog final : public train::Reporter {
 public:
  void step(const train::StepReport& report) override { losses.push_back(report.loss); }
  std::vector<double> losses;
};

}  // namespace mylos::small_models
