#pragma once

#include "data/huggingface/pretrained.hpp"
#include "families/model_families.hpp"
#include "nn/model.hpp"
#include "tasks/interface/attention_choice.hpp"
#include "tasks/interface/pretrained_export.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace mylos::tasks {

/// The model of a run on texts. `Sizes` are those of its family. The network is made when it is first asked for, so
/// that the attention kernel is chosen before, and it is made once. The engine reads the parameters from files().
template <class Sizes>
class LoadedModel {
 public:
  using MakeNetwork = std::unique_ptr<nn::Model> (*)(const Sizes& sizes, Precision precision);

  /// `files` is the model's directory, and `dropout` that of its attention in training. `tokenizer` may be null.
  /// Errors: those of attention_kernel and, if the run trains, of export_precision.
  LoadedModel(const RunConfig& run, data::PretrainedModel files, std::unique_ptr<data::Tokenizer> tokenizer,
              Sizes sizes, double dropout, MakeNetwork make)
      : files_(std::move(files)),
        tokenizer_(std::move(tokenizer)),
        sizes_(std::move(sizes)),
        attention_(attention_use(attention_shape(sizes_), run.engine, dropout)),
        make_(make),
        frozen_(run.engine.freeze) {
    set_attention(attention_kernel(run.task, attention_));
    if (!run.task.train.empty()) exporter_ = pretrained_exporter(run, files_);
  }

  const data::PretrainedModel& files() const { return files_; }
  /// Returns null if the directory has no tokenizer.
  const data::Tokenizer* tokenizer() const { return tokenizer_.get(); }
  /// Returns the sizes with the attention kernel in use.
  const Sizes& sizes() const { return sizes_; }
  const AttentionUse& attention() const { return attention_; }
  /// Sets the attention kernel; call it before network().
  void set_attention(AttentionKernel kernel) {
    sizes_.attention = attention_.shape.kernel = kernel;
    network_.reset();
  }

  const nn::Model& network() const {
    if (!network_) {
      network_ = make_(sizes_, attention_.precision);
      network_->freeze(frozen_);
      if (exporter_) exporter_->take_tensors(network_->table());
    }
    return *network_;
  }
  /// Returns null if the run does not train. It exports nothing before network() was called.
  const train::ModelExporter* exporter() const { return exporter_.get(); }

 private:
  data::PretrainedModel files_;
  std::unique_ptr<data::Tokenizer> tokenizer_;
  Sizes sizes_;
  AttentionUse attention_;
  MakeNetwork make_;
  std::vector<std::string> frozen_;  ///< TrainConfig::freeze
  std::unique_ptr<PretrainedExporter> exporter_;
  mutable std::unique_ptr<nn::Model> network_;  ///< null until it is asked for
};

}  // namespace mylos::tasks
