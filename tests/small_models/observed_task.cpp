#include "tests/small_models/observed_task.hpp"

namespace mylos::small_models {
namespace {

class ObservedEvaluation final : public train::Evaluation {
 public:
  ObservedEvaluation(train::Evaluation& evaluation, const TaskObserver& observer)
      : evaluation_(evaluation), observer_(observer) {}

  std::size_t batches() const override { return evaluation_.batches(); }
  BatchShape largest_batch() const override { return evaluation_.largest_batch(); }
  void assemble(std::size_t index, Batch& batch) const override {
    evaluation_.assemble(index, batch);
    if (observer_.on_evaluation_batch) observer_.on_evaluation_batch(index, batch);
  }
  void take(std::size_t index, std::span<const float> outputs, std::span<const float> losses) override {
    evaluation_.take(index, outputs, losses);
  }
  train::Metrics score() override { return evaluation_.score(); }
  std::span<const train::MetricKind> kinds() const override { return evaluation_.kinds(); }

 private:
  train::Evaluation& evaluation_;
  const TaskObserver& observer_;
};

class ObservedExporter final : public train::ModelExporter {
 public:
  ObservedExporter(const train::ModelExporter& exporter, const TaskObserver& observer)
      : exporter_(exporter), observer_(observer) {}

  std::vector<std::size_t> files() const override { return exporter_.files(); }
  std::unique_ptr<train::ModelExport> start(const std::filesystem::path& directory,
                                            const train::ExportPart& part) const override {
    if (observer_.on_export) observer_.on_export(directory);
    return exporter_.start(directory, part);
  }

 private:
  const train::ModelExporter& exporter_;
  const TaskObserver& observer_;
};

}  // namespace

void ObservedModel::prepare(const ExecutionSpace& space, const BatchShapes& batches, Purpose purpose) const {
  if (observer_.on_prepare) observer_.on_prepare(batches());
  model_.prepare(space, batches, purpose);
}

ObservedTask::ObservedTask(train::Task& task, const TaskObserver& observer)
    : ForwardedTask(task), observer_(observer), model_(task.model(), observer) {
  if (task.evaluation() != nullptr) evaluation_ = std::make_unique<ObservedEvaluation>(*task.evaluation(), observer);
  if (task.exporter() != nullptr) exporter_ = std::make_unique<ObservedExporter>(*task.exporter(), observer);
}

void ObservedTask::assemble(std::size_t step, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                            Batch& batch) const {
  task_.assemble(step, samples, ids, batch);
  if (observer_.on_training_batch) observer_.on_training_batch();
}

void ObservedTask::write_results(const std::filesystem::path& directory) const {
  if (observer_.on_results) observer_.on_results();
  task_.write_results(directory);
}

}  // namespace mylos::small_models
