#include "train/memory_plan.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace mylos::train {
namespace {

/// The number after `key` in a /proc file whose lines are "Key:   123 kB", in bytes; 0 if it is not there.
std::size_t kibibytes_in(const char* file, const std::string& key) {
  std::ifstream input(file);
  std::string word;
  std::size_t value = 0;
  while (input >> word) {
    if (word == key && input >> value) return value * 1024;
  }
  return 0;
}

/// A control group's number, or all there could be where it sets none ("max").
std::size_t group_bytes(const std::filesystem::path& file) {
  std::ifstream input(file);
  std::size_t value = 0;
  return input >> value ? value : SIZE_MAX;
}

/// The path below the root of this process's control group (version 2): Slurm sets a job's limit far down.
std::filesystem::path control_group() {
  std::ifstream input("/proc/self/cgroup");
  for (std::string line; std::getline(input, line);) {
    if (line.starts_with("0::/")) return line.substr(4);
  }
  return {};
}

/// What the control group and those above it leave free; each may set a limit.
std::size_t group_memory() {
  const std::filesystem::path root = "/sys/fs/cgroup";
  std::size_t least = SIZE_MAX;
  for (std::filesystem::path group = root / control_group();; group = group.parent_path()) {
    const std::size_t limit = group_bytes(group / "memory.max"), used = group_bytes(group / "memory.current");
    if (limit != SIZE_MAX && used != SIZE_MAX) least = std::min(least, limit > used ? limit - used : 0);
    if (group == root || !group.has_relative_path()) return least;
  }
}

double gibibytes(std::size_t bytes) { return static_cast<double>(bytes) / (1u << 30); }

std::size_t activation_bytes(const Task& task, const BatchShape& largest) {
  Arena training, evaluation;
  task.model().plan(training, largest, ParameterStore::Purpose::training);
  const BatchShape evaluated = task.evaluation_shape();
  if (evaluated.samples > 0) task.model().plan(evaluation, evaluated, ParameterStore::Purpose::inference);
  return std::max(training.peak(), evaluation.peak());
}

MemoryPlan plan_for(const Task& task, const TrainConfig& config, std::size_t steps, std::size_t micro_batch) {
  const std::size_t elements = task.model().table().size();
  const std::size_t masters = config.precision == Precision::float32 ? 0 : sizeof(float);
  const std::size_t slots = config.optimizer.kind == OptimizerKind::adamw ? 2 : 1;
  MemoryPlan plan{.values = elements * (bytes_of(config.precision) + masters),
                  .gradients = elements * sizeof(float),
                  .optimizer = elements * slots * sizeof(float),
                  .activations = 0,
                  .micro_batch = micro_batch,
                  .largest = largest_micro_batch(task, steps, micro_batch)};
  plan.activations = activation_bytes(task, plan.largest);
  return plan;
}

/// A run's batches are looked at one by one up to this many epochs; beyond it they are bounded.
constexpr std::size_t most_epochs_looked_at = 64;

/// No micro-batch has more rows than the longest samples of an epoch together.
BatchShape bound_of_micro_batches(const Task& task, std::size_t micro_batch) {
  std::vector<std::size_t> rows;
  std::size_t largest_batch = 0;
  for (std::size_t step = 0; step < task.steps_per_epoch(); ++step) {
    const std::vector<std::size_t> samples = task.global_batch(step);
    largest_batch = std::max(largest_batch, samples.size());
    for (const std::size_t sample : samples) rows.push_back(task.rows_of(sample));
  }
  std::ranges::sort(rows, std::greater<>());
  rows.resize(std::min({rows.size(), micro_batch, largest_batch}));
  return {rows.size(), std::accumulate(rows.begin(), rows.end(), std::size_t{0}), rows.front()};
}

}  // namespace

std::size_t available_memory() { return std::min(kibibytes_in("/proc/meminfo", "MemAvailable:"), group_memory()); }

std::size_t resident_memory() { return kibibytes_in("/proc/self/status", "VmRSS:"); }

std::size_t peak_resident_memory() { return kibibytes_in("/proc/self/status", "VmHWM:"); }

BatchShape largest_micro_batch(const Task& task, std::size_t steps, std::size_t micro_batch) {
  if (steps / most_epochs_looked_at > task.steps_per_epoch()) return bound_of_micro_batches(task, micro_batch);
  BatchShape largest;
  for (std::size_t step = 0; step < steps; ++step) {
    const std::vector<std::size_t> samples = task.global_batch(step);
    for (std::size_t begin = 0; begin < samples.size(); begin += micro_batch) {
      const std::size_t end = std::min(begin + micro_batch, samples.size());
      std::size_t rows = 0;
      for (std::size_t i = begin; i < end; ++i) {
        rows += task.rows_of(samples[i]);
        largest.longest = std::max(largest.longest, task.rows_of(samples[i]));
      }
      largest.rows = std::max(largest.rows, rows);
      largest.samples = std::max(largest.samples, end - begin);
    }
  }
  return largest;
}

std::size_t largest_global_batch(const Task& task, std::size_t steps) {
  std::size_t largest = 0;
  for (std::size_t step = 0; step < std::min(steps, task.steps_per_epoch()); ++step) {
    largest = std::max(largest, task.global_batch(step).size());
  }
  return largest;
}

MemoryPlan plan_memory(const Task& task, const TrainConfig& config, std::size_t steps, std::size_t available) {
  const bool chosen = config.micro_batch > 0;
  const std::size_t largest = largest_global_batch(task, steps);
  MemoryPlan plan = plan_for(task, config, steps, chosen ? std::min(config.micro_batch, largest) : largest);
  while (!chosen && plan.total() > available && plan.micro_batch > 1) {
    plan = plan_for(task, config, steps, (plan.micro_batch + 1) / 2);
  }
  if (plan.total() > available) {
    fail(
        fmt::format("memory: {:.2f} GiB are needed (values {:.2f}, gradients {:.2f}, optimizer {:.2f}, activations of "
                    "{} tokens {:.2f}), {:.2f} GiB are free; {}",
                    gibibytes(plan.total()), gibibytes(plan.values), gibibytes(plan.gradients),
                    gibibytes(plan.optimizer), plan.largest.rows, gibibytes(plan.activations), gibibytes(available),
                    plan.micro_batch > 1 ? "use a smaller --micro-batch" : "use a smaller --max-length or model"));
  }
  return plan;
}

}  // namespace mylos::train
