#pragma once

#include "data/huggingface/pretrained.hpp"
#include "data/tokenizer/tokenizer.hpp"
#include "families/interface/text_model.hpp"
#include "tasks/interface/attention_choice.hpp"
#include "tasks/interface/pretrained_export.hpp"
#include "tasks/interface/run_adapter.hpp"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mylos::tasks {

/// The head of a task on texts.
struct TextHead {
  families::BodyOutput input;                                            ///< what it takes
  std::function<nn::HeadSettings(const families::TextModel&)> settings;  ///< of a model that gives it
  std::string_view architecture;  ///< end of its classes' names in transformers: "ForQuestionAnswering"
  AdapterTask adapters;
};

/// The model of a run on texts. The network is made when it is first asked for, so that the attention kernel is chosen
/// before, and it is made once. The engine reads the parameters from files().
class LoadedModel {
 public:
  /// Reads the configuration in the model's directory. `tokenizer` may be null. Errors: those of read_text_model,
  /// attention_kernel and, if the run trains, of export_precision.
  LoadedModel(const FileReader& files, const RunConfig& run, const TextHead& head,
              std::unique_ptr<data::Tokenizer> tokenizer, const Notice& notice);

  const data::PretrainedModel& files() const { return files_; }
  /// Receives a tensor of the network by name.
  using TensorSink = std::function<void(const std::string& name, const data::TensorReader& read)>;
  /// Passes the tensors of the directory, and of the adapter, to `sink`. Those of modules for which `is_optional`
  /// returns true may be missing. A run that does not train merges the adapter into the weights. Errors: those of
  /// PretrainedModel::read_weights and data::AdapterWeights.
  data::WeightReport read_weights(const FileReader& files, const std::function<bool(const std::string&)>& is_optional,
                                  const TensorSink& sink) const;
  /// Returns the directory of the model whose adapter this run trains; empty for other runs.
  std::string adapted_model() const { return trains_ && adapter_.exists() ? files_.directory().string() : ""; }
  /// Returns null if the directory has no tokenizer.
  const data::Tokenizer* tokenizer() const { return tokenizer_.get(); }
  /// Returns the model with the attention kernel in use.
  const families::TextModel& text() const { return model_; }
  const AttentionUse& attention() const { return attention_; }
  /// Sets the attention kernel; call it before network().
  void set_attention(AttentionKernel kernel);

  const nn::Model& network() const;
  /// Returns null if the run does not train. It exports nothing before network() was called.
  const train::ModelExporter* exporter() const;

 private:
  data::WeightReport read_adapted(const FileReader& files, std::span<const data::TensorSpec> wanted,
                                  const TensorSink& sink) const;
  data::WeightReport read_merged(const FileReader& files, std::span<const data::TensorSpec> wanted,
                                 const TensorSink& sink) const;

  data::PretrainedModel files_;
  std::unique_ptr<data::Tokenizer> tokenizer_;
  TextHead head_;
  families::TextModel model_;
  AttentionUse attention_;
  bool trains_;
  std::vector<std::string> frozen_;  ///< TrainConfig::freeze
  RunAdapter adapter_;
  std::unique_ptr<PretrainedExporter> exporter_;               ///< null if the run trains nothing, or an adapter
  mutable std::unique_ptr<AdapterExporter> adapter_exporter_;  ///< set with the network of a run that trains an adapter
  mutable std::unique_ptr<nn::Model> network_;                 ///< null until it is asked for
};

}  // namespace mylos::tasks
