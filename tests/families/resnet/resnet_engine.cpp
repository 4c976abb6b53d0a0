#include "tests/families/resnet/resnet_engine.hpp"

#include "data/huggingface/safetensors.hpp"
#include "data/images/image_set.hpp"
#include "families/resnet/resnet_config.hpp"
#include "nn/head.hpp"
#include "tests/support/paths.hpp"
#include "train/engine/models/initial_parameters.hpp"

#include <algorithm>
#include <numeric>

namespace mylos::tests {
namespace {

namespace fs = std::filesystem;

/// Converts (N, channels, pixels) to (N, pixels, channels).
std::vector<float> channels_last(const std::vector<float>& values, std::size_t channels, std::size_t pixels) {
  std::vector<float> turned(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t image = i / (channels * pixels), channel = i / pixels % channels, pixel = i % pixels;
    turned[(image * pixels + pixel) * channels + channel] = values[i];
  }
  return turned;
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from, std::size_t begin, std::size_t size) {
  const auto first = from.begin() + static_cast<std::ptrdiff_t>(begin);
  to.insert(to.end(), first, first + static_cast<std::ptrdiff_t>(size));
}

std::size_t planned_resnet_bytes(const RecordedResnetTask& task, nn::Recompute recompute) {
  Arena training, prediction;
  task.model().plan(training, task.shape(), ParameterStore::Purpose::training, recompute);
  task.model().plan(prediction, task.shape(), ParameterStore::Purpose::inference, nn::Recompute::none);
  return std::max(training.peak(), prediction.peak());
}

}  // namespace

void LabelledImages::fill(std::span<const std::vector<std::size_t>> groups, std::span<const std::uint32_t> ids,
                          Batch& batch) const {
  std::vector<std::size_t> lengths;
  LabelledImages chosen;
  for (const std::vector<std::size_t>& group : groups) {
    lengths.push_back(group.size());
    for (const std::size_t image : group) {
      if (values.empty()) append(chosen.bytes, bytes, image * size, size);
      if (!values.empty()) append(chosen.values, values, image * size, size);
      chosen.labels.push_back(labels[image]);
    }
  }
  batch.reset(lengths, ids);
  if (values.empty()) batch.set(nn::names::pixels, std::span<const std::uint8_t>(chosen.bytes));
  if (!values.empty()) batch.set(nn::names::pixel_values, std::span<const float>(chosen.values));
  batch.set(nn::names::labels, std::span<const std::int32_t>(chosen.labels));
}

LabelledImages read_recorded_images(const fs::path& batch_file) {
  const data::SafetensorsFile file(FileReader(), batch_file);
  const std::vector<std::size_t>& shape = file.find("pixel_values")->shape;
  const std::size_t pixels = shape[2] * shape[3];
  LabelledImages images{.size = shape[1] * pixels,
                        .values = channels_last(file.read_float("pixel_values"), shape[1], pixels),
                        .bytes = {},
                        .labels = {}};
  for (const std::int64_t label : file.read_integer("labels")) {
    images.labels.push_back(static_cast<std::int32_t>(label));
  }
  return images;
}

LabelledImages read_digits() {
  const auto set = data::open_images(FileReader(), (shared_data() / "mnist").string(), data::ImagePart::training);
  LabelledImages images;
  for (std::size_t i = 0; i < set->size(); ++i) {
    const data::Image image = set->decode(i);
    images.size = image.pixels.size();
    append(images.bytes, image.pixels, 0, image.pixels.size());
    images.labels.push_back(set->label(i));
  }
  return images;
}

RecordedResnet read_resnet(const fs::path& config, std::size_t height, std::size_t width) {
  const families::ResnetConfig read = families::read_resnet_config({FileReader(), config});
  RecordedResnet resnet{.shape = read.shape, .head = {.labels = read.labels.size()}};
  resnet.shape.height = height;
  resnet.shape.width = width;
  resnet.shape.mean.assign(read.shape.channels, 0.1307f);
  resnet.shape.deviation.assign(read.shape.channels, 0.3081f);
  return resnet;
}

RecordedResnet recorded_resnet(const fs::path& folder) {
  const data::SafetensorsFile file(FileReader(), folder / "batch.safetensors");
  const std::vector<std::size_t>& images = file.find("pixel_values")->shape;
  return read_resnet(folder / "config.json", images[2], images[3]);
}

std::vector<float> read_resnet_tensor(const fs::path& path, const ParameterTensor& row, const std::string& prefix) {
  const data::SafetensorsFile file(FileReader(), path);
  const std::string name = prefix + row.name;
  if (row.rule.kind == StateRule::Kind::count) {
    const auto integers = file.read_integer(name);
    return {integers.begin(), integers.end()};
  }
  const std::vector<float> values = file.read_float(name);
  return row.shape.size() == 4 ? channels_last(values, row.shape[3], row.shape[1] * row.shape[2]) : values;
}

RecordedResnetTask::RecordedResnetTask(const RecordedResnet& resnet, Precision precision, fs::path weights,
                                       LabelledImages images, std::vector<Groups> steps)
    : weights_(std::move(weights)),
      images_(std::move(images)),
      steps_(std::move(steps)),
      model_(families::make_resnet(resnet.shape, resnet.head, precision)) {
  for (const Groups& step : steps_) groups_.insert(groups_.end(), step.begin(), step.end());
}

void RecordedResnetTask::initial_values(const FileReader&, const train::TensorWriter& write) const {
  for (const ParameterTensor& row : model_->table().tensors()) write(row.name, read_resnet_tensor(weights_, row));
  for (const ParameterTensor& row : model_->table().state_tensors()) write(row.name, read_resnet_tensor(weights_, row));
}

std::vector<std::size_t> RecordedResnetTask::global_batch(std::size_t step) const {
  std::size_t first = 0;
  for (std::size_t before = 0; before < step % steps_.size(); ++before) first += steps_[before].size();
  std::vector<std::size_t> samples(steps_[step % steps_.size()].size());
  std::iota(samples.begin(), samples.end(), first);
  return samples;
}

double RecordedResnetTask::weight(std::span<const std::size_t> samples) const {
  double images = 0.0;
  for (const std::size_t sample : samples) images += static_cast<double>(groups_[sample].size());
  return images;
}

void RecordedResnetTask::assemble(std::size_t, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                                  Batch& batch) const {
  Groups groups;
  for (const std::size_t sample : samples) groups.push_back(groups_[sample]);
  images_.fill(groups, ids, batch);
}

BatchShape RecordedResnetTask::shape() const {
  BatchShape largest;
  for (const Groups& step : steps_) {
    std::size_t images = 0;
    for (const std::vector<std::size_t>& group : step) {
      images += group.size();
      largest.longest = std::max(largest.longest, group.size());
    }
    largest.samples = std::max(largest.samples, step.size());
    largest.rows = std::max(largest.rows, images);
  }
  return largest;
}

void RecordedResnetTask::fill_first(Batch& batch) const {
  std::vector<std::uint32_t> ids(steps_.front().size());
  std::iota(ids.begin(), ids.end(), 0u);
  images_.fill(steps_.front(), ids, batch);
}

ResnetEngine::ResnetEngine(RecordedResnetTask trained, const std::string& provider, Precision precision,
                           nn::Recompute recomputed)
    : task(std::move(trained)),
      recompute(recomputed),
      gemm(provider),
      store(task.model().table(), precision, ParameterStore::Purpose::training),
      strategy(parallel::make_single_process_strategy(store)),
      optimizer(nn::make_optimizer({.name = "sgd", .weight_decay = 5e-4}, store.table(), strategy->slices())),
      arena("mylos::test::arena", planned_resnet_bytes(task, recomputed)) {
  load_initial_parameters(space, task, std::nullopt, store, *strategy);
}

void ResnetEngine::read_momentum(const fs::path& file) {
  const auto slices = strategy->slices();
  for (const ParameterTensor& row : store.table().tensors()) {
    const std::vector<float> values = read_resnet_tensor(file, row, "momentum.");
    for (std::size_t i = 0; i < slices.size(); ++i) {
      if (slices[i].unit != row.unit) continue;
      const Vector<float> slot = slice(optimizer->slot(0, i), row.offset, row.offset + row.size);
      Kokkos::deep_copy(slot, Kokkos::View<const float*, HostSpace, Kokkos::MemoryUnmanaged>(values.data(), row.size));
    }
  }
}

void ResnetEngine::write_state(std::size_t state_row, std::span<const float> values) {
  Kokkos::deep_copy(store.state(state_row),
                    Kokkos::View<const float*, HostSpace, Kokkos::MemoryUnmanaged>(values.data(), values.size()));
}

}  // namespace mylos::tests
