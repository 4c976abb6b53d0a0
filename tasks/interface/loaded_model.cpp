#include "tasks/interface/loaded_model.hpp"

#include "core/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mylos::tasks {

LoadedModel::LoadedModel(const FileReader& files, const RunConfig& run, const TextHead& head,
                         std::unique_ptr<data::Tokenizer> tokenizer, const Notice& notice)
    : files_(files, run.task.model),
      tokenizer_(std::move(tokenizer)),
      head_(head),
      model_(families::read_text_model(files_, head.input, run.task.dropout)),
      attention_(attention_use(model_.attention, run.engine,
                               run.task.train.empty() ? 0.0 : static_cast<double>(model_.attention_dropout))),
      trains_(!run.task.train.empty()),
      frozen_(run.engine.freeze),
      adapter_(files, run, model_, head.adapters, notice) {
  set_attention(attention_kernel(run.task, attention_));
  ensure(!adapter_.exists() || run.engine.output.empty() || files_.has_weights(files),
         fmt::format("{}: has no weights (model.safetensors or model.safetensors.index.json) that an adapter could "
                     "belong to; train the model first, without --lora-rank",
                     run.task.model.string()));
  if (trains_ && !adapter_.exists()) exporter_ = pretrained_exporter(files, run, files_, head.architecture);
}

void LoadedModel::set_attention(AttentionKernel kernel) {
  model_.attention.kernel = attention_.shape.kernel = kernel;
  network_.reset();
}

const nn::Model& LoadedModel::network() const {
  if (!network_) {
    network_ = model_.network(head_.settings(model_), attention_.precision);
    if (trains_ && adapter_.exists()) {
      adapter_.adapt(*network_);
      adapter_exporter_ = std::make_unique<AdapterExporter>(adapter_.config(), network_->table());
    } else {
      network_->freeze(frozen_);
    }
    if (exporter_) exporter_->take_tensors(network_->table());
  }
  return *network_;
}

const train::ModelExporter* LoadedModel::exporter() const {
  if (adapter_exporter_) return adapter_exporter_.get();
  return exporter_.get();
}

data::WeightReport LoadedModel::read_weights(const FileReader& files,
                                             const std::function<bool(const std::string&)>& is_optional,
                                             const TensorSink& sink) const {
  const ParameterTable& table = network().table();
  std::vector<data::TensorSpec> wanted;
  for (const ParameterTensor& tensor : table.tensors()) {
    if (!tensor.adapter) wanted.push_back({tensor.name, tensor.shape, is_optional(tensor.name)});
  }
  if (!adapter_.exists()) {
    return files_.read_weights(files, wanted, model_.naming,
                               [&](std::size_t row, const data::TensorReader& read) { sink(wanted[row].name, read); });
  }
  return trains_ ? read_adapted(files, wanted, sink) : read_merged(files, wanted, sink);
}

/// Passes the tensors of the base, but those that the directory of the adapter has, and those of that directory.
data::WeightReport LoadedModel::read_adapted(const FileReader& files, std::span<const data::TensorSpec> wanted,
                                             const TensorSink& sink) const {
  const ParameterTable& table = network().table();
  const auto own = adapter_.weights(files, table);
  const auto is_own = [&](const std::string& name) { return own != nullptr && own->contains(name); };
  data::WeightReport report =
      files_.read_weights(files, wanted, model_.naming, [&](std::size_t row, const data::TensorReader& read) {
        if (!is_own(wanted[row].name)) sink(wanted[row].name, read);
      });
  for (const ParameterTensor& tensor : table.tensors()) {
    if (is_own(tensor.name)) sink(tensor.name, own->reader(tensor.name));
  }
  std::erase_if(report.missing, is_own);
  return report;
}

data::WeightReport LoadedModel::read_merged(const FileReader& files, std::span<const data::TensorSpec> wanted,
                                            const TensorSink& sink) const {
  const auto merged = adapter_.merged(files, network().table());
  data::WeightReport report =
      files_.read_weights(files, wanted, model_.naming, [&](std::size_t row, const data::TensorReader& read) {
        sink(wanted[row].name, merged->merged(wanted[row], read));
      });
  for (const data::TensorSpec& tensor : wanted) {
    if (std::ranges::count(report.missing, tensor.name) == 0) continue;
    if (const data::TensorReader read = merged->merged(tensor, {})) {
      sink(tensor.name, read);
      std::erase(report.missing, tensor.name);
    }
  }
  return report;
}

}  // namespace mylos::tasks
