#pragma once

#include "core/base/notice.hpp"
#include "data/huggingface/adapter_weights.hpp"
#include "families/interface/text_model.hpp"
#include "nn/model.hpp"
#include "tasks/interface/run_config.hpp"
#include "train/engine/model_exporter.hpp"

#include <memory>
#include <optional>
#include <string_view>

/// The adapter of a run's model: of --lora-rank or of --adapter.
namespace mylos::tasks {

/// What PEFT says of a task.
struct AdapterTask {
  std::string_view type;       ///< "CAUSAL_LM"
  std::string_view head = {};  ///< module of the head, which is always trained whole; empty if the body has its tensors
};

class RunAdapter {
 public:
  /// Errors: those of data::read_adapter_config, and std::runtime_error if the
  /// adapter is for another task or for another model.
  RunAdapter(const FileReader& files, const RunConfig& run, const families::TextModel& model, const AdapterTask& task,
             const Notice& notice);

  /// Returns whether the run has an adapter.
  bool exists() const { return config_.has_value(); }
  const data::AdapterConfig& config() const { return *config_; }

  /// Adds the adapter to the network. Errors: those of data::adapter_targets.
  void adapt(nn::Model& network) const;
  /// Reads the directory's values of the tensors that an adapted network trains; null if they start from their
  /// initialisers. `network` must outlive the result.
  std::unique_ptr<data::AdapterWeights> weights(const FileReader& files, const ParameterTable& network) const;
  /// Reads the directory as a part of the weights of a network without adapters.
  std::unique_ptr<data::MergedAdapter> merged(const FileReader& files, const ParameterTable& network) const;

 private:
  std::filesystem::path directory_;  ///< --adapter, or empty
  std::optional<data::AdapterConfig> config_ = {};
};

/// Exports the tensors that an adapted network trains, as a directory of PEFT.
class AdapterExporter final : public train::ModelExporter {
 public:
  AdapterExporter(data::AdapterConfig config, const ParameterTable& table);

  bool exports(const ParameterTensor& tensor) const override { return tensor.group.trainable; }
  std::vector<std::size_t> files() const override { return {count_}; }
  std::unique_ptr<train::ModelExport> start(const std::filesystem::path& directory,
                                            const train::ExportPart& part) const override;

 private:
  data::AdapterConfig config_;
  std::size_t count_;  ///< tensors of the table
  std::vector<data::TensorShape> weights_;
};

}  // namespace mylos::tasks
