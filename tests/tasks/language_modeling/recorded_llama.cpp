#include "tests/tasks/language_modeling/recorded_llama.hpp"

#include "tasks/language_modeling/llama_shape_of.hpp"
#include "tests/support/arrays.hpp"
#include "train/engine/initial_parameters.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace mylos::tests {

namespace fs = std::filesystem;

void RecordedTexts::add(std::span<const std::int32_t> ids) {
  lengths.push_back(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    tokens.push_back(ids[i]);
    labels.push_back(i + 1 < ids.size() ? ids[i + 1] : -1);
  }
}

void RecordedTexts::fill(std::span<const std::size_t> samples, std::span<const std::uint32_t> ids, Batch& batch) const {
  namespace names = nn::language_modeling;
  RecordedTexts chosen;
  for (const std::size_t sample : samples) {
    const auto first = std::accumulate(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(sample), 0ul);
    chosen.lengths.push_back(lengths[sample]);
    for (std::size_t row = first; row < first + lengths[sample]; ++row) {
      chosen.tokens.push_back(tokens[row]);
      chosen.labels.push_back(labels[row]);
    }
  }
  batch.reset(chosen.lengths, ids);
  batch.set_indices(names::tokens, chosen.tokens);
  batch.set(names::labels, std::span<const std::int32_t>(chosen.labels));
}

void RecordedTexts::fill(Batch& batch) const {
  std::vector<std::size_t> samples(lengths.size());
  std::iota(samples.begin(), samples.end(), std::size_t{0});
  fill(samples, std::vector<std::uint32_t>(samples.begin(), samples.end()), batch);
}

BatchShape RecordedTexts::shape() const { return {lengths.size(), tokens.size(), *std::ranges::max_element(lengths)}; }

RecordedTexts read_recorded_texts(const fs::path& batch_file) {
  const data::SafetensorsFile recorded(batch_file);
  const auto mask = recorded.read_integer("attention_mask"), ids = recorded.read_integer("input_ids");
  const auto labels = recorded.read_integer("labels");
  const std::size_t samples = recorded.find("input_ids")->shape[0], padded = recorded.find("input_ids")->shape[1];
  RecordedTexts texts;
  for (std::size_t sample = 0; sample < samples; ++sample) {
    std::vector<std::int32_t> tokens;
    for (std::size_t i = sample * padded; i < (sample + 1) * padded && mask[i] != 0; ++i) {
      tokens.push_back(static_cast<std::int32_t>(ids[i]));
      EXPECT_EQ(labels[i], ids[i]) << "every token but the first is predicted";
    }
    texts.add(tokens);
  }
  return texts;
}

RecordedLlamaTask::RecordedLlamaTask(const fs::path& folder, RecordedTexts texts)
    : weights_(folder / "model.safetensors"),
      texts_(std::move(texts)),
      model_(
          nn::make_llama(tasks::llama_shape_of(data::read_llama_config(folder / "config.json")), Precision::float32)) {}

void RecordedLlamaTask::initial_values(const train::TensorWriter& write) const {
  const data::SafetensorsFile weights(weights_);
  for (const data::TensorInfo& tensor : weights.tensors()) write(tensor.name, weights.read_float(tensor.name));
}

std::vector<std::size_t> RecordedLlamaTask::global_batch(std::size_t) const {
  std::vector<std::size_t> all(texts_.lengths.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

double RecordedLlamaTask::weight(std::span<const std::size_t> samples) const {
  double predicted = 0.0;
  for (const std::size_t sample : samples) predicted += static_cast<double>(texts_.lengths[sample] - 1);
  return predicted;
}

namespace {

std::size_t planned_llama_bytes(const RecordedLlamaTask& task, nn::Recompute recompute) {
  Arena training, prediction;
  task.model().plan(training, task.texts().shape(), ParameterStore::Purpose::training, recompute);
  task.model().plan(prediction, task.texts().shape(), ParameterStore::Purpose::inference, nn::Recompute::none);
  return std::max(training.peak(), prediction.peak());
}

}  // namespace

LlamaEngine::LlamaEngine(const fs::path& folder, const std::string& provider, RecordedTexts texts,
                         const LlamaLayout& layout)
    : task(folder, std::move(texts)),
      recompute(layout.recompute),
      gemm(provider),
      ranks(layout.world != nullptr ? *layout.world : *alone),
      mesh(ranks, layout.shards),
      store(task.model().table(), Precision::float32, ParameterStore::Purpose::training,
            parallel::store_layout(layout.mode, mesh.shard().size())),
      mode(parallel::make_sharding_strategy({.kind = layout.mode}, mesh, store)),
      optimizer(nn::make_adamw({.weight_decay = 0.01}, store.table(), mode->slices())),
      arena("mylos::test::arena", planned_llama_bytes(task, recompute)) {
  load_initial_parameters(space, task, std::nullopt, store, *mode);
}

std::vector<double> LlamaEngine::logits(const RecordedTexts& texts) {
  Batch batch;
  texts.fill(batch);
  Values all;
  task.model().logits(pass(), batch, [&](std::size_t, const ConstMatrix<float>& chunk) {
    const Values values = host_values(chunk);
    all.insert(all.end(), values.begin(), values.end());
  });
  return all;
}

}  // namespace mylos::tests
