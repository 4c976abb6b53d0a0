#pragma once

#include "core/base/notice.hpp"
#include "tasks/image_classification/classifier_model.hpp"
#include "tasks/image_classification/group_stream.hpp"
#include "tasks/image_classification/image_config.hpp"
#include "tasks/image_classification/image_data.hpp"
#include "tasks/image_classification/image_evaluation.hpp"
#include "tasks/image_classification/image_input.hpp"
#include "tasks/image_classification/picture_notes.hpp"
#include "tasks/interface/task.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

/// Image classification: images decoded ahead of the step, BatchNorm groups as samples, accuracy as score.
namespace mylos::tasks {

class ImageTask final : public Task {
 public:
  /// Reads the model's directory, or takes built-in sizes, and opens both data sets. `notice` gets a line about each
  /// default chosen and each item skipped. Errors: std::runtime_error on files and on settings that do not fit them.
  ImageTask(const FileReader& files, const RunConfig& run, Notice notice);

  /// Pass on the large arrays of the data sets: pixels in memory, or indexes of images that every rank reads from files
  /// as it trains.
  void write_data(ByteWriter& bytes) const override;
  void receive_data(ByteReader& bytes) override;

  const nn::Model& model() const override { return *network_; }
  /// A model without weights starts from the initialisers; without training data this is an error.
  void initial_values(const FileReader& files, const train::TensorWriter& write) const override;
  void read_weight_headers(const FileReader& files) const override;

  std::size_t steps_per_epoch() const override { return stream_ ? stream_->steps_per_epoch() : 0; }
  std::vector<std::size_t> global_batch(std::size_t step) const override { return stream_->global_batch(step); }
  train::WorkKind work() const override;
  std::size_t loaded_bytes(const BatchShape& largest) const override;
  std::size_t rows_of(std::size_t sample) const override { return stream_->rows_of(sample); }
  double weight(std::span<const std::size_t> samples) const override { return stream_->weight(samples); }
  void read_ahead(const train::ExpectedBatches& expected) const override;
  void assemble(std::size_t step, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                Batch& batch) const override;

  std::vector<train::DataNotes*> data_notes() const override;
  ImageEvaluation* evaluation() const override { return evaluation_.get(); }
  std::optional<train::MetricKind> training_score() const override {
    return train::MetricKind{"training_accuracy", "Accuracy in training"};
  }
  void write_results(const std::filesystem::path& directory) const override;
  std::string short_answers() const override { return mistakes_json(evaluation_->mistakes()); }
  const train::ModelExporter* exporter() const override { return exporter_.get(); }

  std::vector<DataChecksum> data_checksums() const override;
  nlohmann::ordered_json resolved() const override;
  std::string model_text() const override { return classifier_.images->text(); }
  std::string train_text() const override;
  std::string dev_text() const override { return describe_images(evaluation_->set()); }
  EvaluatedSamples evaluated() const override { return {evaluation_->set().size(), "images"}; }
  std::string results_text() const override { return evaluation_->results(); }
  std::vector<std::string> closing_lines() const override;

  const ClassifierModel& classifier() const { return classifier_; }
  const ImageInput& input() const { return input_; }
  /// Returns null if there is no training data.
  const GroupStream* stream() const { return stream_.get(); }

 private:
  void open_data(const FileReader& files);
  void resolve_labels(const FileReader& files);
  void resolve_channels();
  void make_stream(const FileReader& files, const RunConfig& run);
  void check_groups() const;

  TaskConfig configured_;
  ImageConfig config_;
  Notice notice_;
  ClassifierModel classifier_;
  std::unique_ptr<data::ImageSet> train_, dev_;  ///< dev_ is moved into the evaluation
  std::vector<data::ImageSet*> sets_;            ///< both, wherever they are
  std::vector<std::unique_ptr<PictureNotes>> notes_;
  std::vector<std::int32_t> train_labels_, dev_labels_;
  ImageInput input_;
  std::unique_ptr<nn::Model> network_;
  std::unique_ptr<train::ModelExporter> exporter_;  ///< null without training data
  std::unique_ptr<GroupStream> stream_;
  std::unique_ptr<ImageBatches> batches_;
  std::vector<std::vector<std::size_t>> order_;  ///< images of each step, if read from a file
  std::unique_ptr<ImageEvaluation> evaluation_;
};

}  // namespace mylos::tasks
