#pragma once

#include "data/huggingface/pretrained.hpp"
#include "data/tokenizer/tokenizer.hpp"
#include "families/interface/text_model.hpp"
#include "tasks/interface/attention_choice.hpp"
#include "tasks/interface/pretrained_export.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mylos::tasks {

/// The head of a task on texts.
struct TextHead {
  families::BodyOutput input;                                            ///< what it takes
  std::function<nn::HeadSettings(const families::TextModel&)> settings;  ///< of a model that gives it
  std::string_view architecture;  ///< end of its classes' names in transformers: "ForQuestionAnswering"
};

/// The model of a run on texts. The network is made when it is first asked for, so that the attention kernel is chosen
/// before, and it is made once. The engine reads the parameters from files().
class LoadedModel {
 public:
  /// Reads the configuration in the model's directory. `tokenizer` may be null. Errors: those of read_text_model,
  /// attention_kernel and, if the run trains, of export_precision.
  LoadedModel(const FileReader& files, const RunConfig& run, const TextHead& head,
              std::unique_ptr<data::Tokenizer> tokenizer);

  const data::PretrainedModel& files() const { return files_; }
  /// Returns null if the directory has no tokenizer.
  const data::Tokenizer* tokenizer() const { return tokenizer_.get(); }
  /// Returns the model with the attention kernel in use.
  const families::TextModel& text() const { return model_; }
  const AttentionUse& attention() const { return attention_; }
  /// Sets the attention kernel; call it before network().
  void set_attention(AttentionKernel kernel);

  const nn::Model& network() const;
  /// Returns null if the run does not train. It exports nothing before network() was called.
  PretrainedExporter* exporter() const { return exporter_.get(); }

 private:
  data::PretrainedModel files_;
  std::unique_ptr<data::Tokenizer> tokenizer_;
  TextHead head_;
  families::TextModel model_;
  AttentionUse attention_;
  std::vector<std::string> frozen_;  ///< TrainConfig::freeze
  std::unique_ptr<PretrainedExporter> exporter_;
  mutable std::unique_ptr<nn::Model> network_;  ///< null until it is asked for
};

}  // namespace mylos::tasks
