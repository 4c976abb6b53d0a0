#include "tasks/interface/loaded_model.hpp"

#include <utility>

namespace mylos::tasks {

LoadedModel::LoadedModel(const FileReader& files, const RunConfig& run, const TextHead& head,
                         std::unique_ptr<data::Tokenizer> tokenizer)
    : files_(files, run.task.model),
      tokenizer_(std::move(tokenizer)),
      head_(head),
      model_(families::read_text_model(files_, head.input, run.task.dropout)),
      attention_(attention_use(model_.attention, run.engine,
                               run.task.train.empty() ? 0.0 : static_cast<double>(model_.attention_dropout))),
      frozen_(run.engine.freeze) {
  set_attention(attention_kernel(run.task, attention_));
  if (!run.task.train.empty()) exporter_ = pretrained_exporter(files, run, files_, head.architecture);
}

void LoadedModel::set_attention(AttentionKernel kernel) {
  model_.attention.kernel = attention_.shape.kernel = kernel;
  network_.reset();
}

const nn::Model& LoadedModel::network() const {
  if (!network_) {
    network_ = model_.network(head_.settings(model_), attention_.precision);
    network_->freeze(frozen_);
    if (exporter_) exporter_->take_tensors(network_->table());
  }
  return *network_;
}

}  // namespace mylos::tasks
