#include "tests/families/resnet/resnet_twin.hpp"

#include "nn/head.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace mylos::tests {
namespace {

void rectify(Values& values) {
  for (double& value : values) value = std::max(value, 0.0);
}

}  // namespace

ResnetTwinBatch::ResnetTwinBatch(const families::ResnetShape& shape, std::vector<std::size_t> group_sizes)
    : groups(std::move(group_sizes)), image_size(shape.pixels() * shape.channels) {
  const std::size_t images = std::accumulate(groups.begin(), groups.end(), std::size_t{0});
  pixels = random_values(images * image_size, 31, 1.5);
  for (std::size_t i = 0; i < images; ++i) labels.push_back(static_cast<std::int32_t>(i * 7 % twin_head.labels));
}

void ResnetTwinBatch::fill(std::size_t begin, std::size_t end, Batch& batch) const {
  const auto images_before = [&](std::size_t group) {
    return std::accumulate(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(group), std::size_t{0});
  };
  const auto first = static_cast<std::ptrdiff_t>(images_before(begin));
  const auto last = static_cast<std::ptrdiff_t>(images_before(end)), size = static_cast<std::ptrdiff_t>(image_size);
  std::vector<std::uint32_t> ids(end - begin);
  std::iota(ids.begin(), ids.end(), static_cast<std::uint32_t>(begin));
  batch.reset(std::span(groups).subspan(begin, end - begin), ids);
  batch.set(nn::names::pixel_values, std::vector<float>(pixels.begin() + first * size, pixels.begin() + last * size));
  batch.set(nn::names::labels, std::vector<std::int32_t>(labels.begin() + first, labels.begin() + last));
}

BatchShape ResnetTwinBatch::shape() const { return {groups.size(), images(), *std::ranges::max_element(groups)}; }

ResnetTwin::ResnetTwin(const families::ResnetShape& shape, const Engine& engine, const ResnetTwinBatch& batch)
    : shape_(shape), table_(engine.store.table()), batch_(batch) {
  for (std::size_t row = 0; row < table_.tensors().size(); ++row) parameters_.push_back(engine.values(row));
  for (std::size_t row = 0; row < table_.state_tensors().size(); ++row) {
    state_.push_back(host_values(engine.store.state(row)));
  }
}

void ResnetTwin::normalize(const std::string& name, Maps& x, bool running) const {
  const Values &weight = named(name + ".weight"), &bias = named(name + ".bias");
  const Values& means = state_[table_.find_state(name + ".running_mean")];
  const Values& variances = state_[table_.find_state(name + ".running_var")];
  std::size_t first = 0;
  for (const std::size_t size : batch_.groups) {
    const std::size_t rows = size * x.height * x.width;
    for (std::size_t c = 0; c < x.channels; ++c) {
      const auto at = [&](std::size_t row) -> double& { return x.values[(first + row) * x.channels + c]; };
      double mean = 0.0, variance = 0.0;
      for (std::size_t row = 0; row < rows; ++row) mean += at(row) / static_cast<double>(rows);
      for (std::size_t row = 0; row < rows; ++row) variance += std::pow(at(row) - mean, 2) / static_cast<double>(rows);
      if (running) mean = means[c], variance = variances[c];
      const double factor = weight[c] / std::sqrt(variance + 1e-5);
      for (std::size_t row = 0; row < rows; ++row) at(row) = (at(row) - mean) * factor + bias[c];
    }
    first += rows;
  }
}

ResnetTwin::Maps ResnetTwin::convolved(const std::string& name, const Maps& x, std::size_t out, std::size_t kernel,
                                       std::size_t stride, bool running) const {
  const Values& weight = named(name + ".convolution.weight");
  const std::size_t padding = kernel / 2, height = (x.height + 2 * padding - kernel) / stride + 1;
  const std::size_t width = (x.width + 2 * padding - kernel) / stride + 1;
  Maps y{height, width, out, Values(batch_.images() * height * width * out, 0.0)};
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    const std::size_t o = i % out, column = i / out % width, row = i / out / width % height;
    const std::size_t image = i / out / width / height;
    for (std::size_t k = 0; k < kernel * kernel; ++k) {
      const std::size_t r = row * stride + k / kernel, c = column * stride + k % kernel;
      if (r < padding || c < padding || r - padding >= x.height || c - padding >= x.width) continue;
      const double* const in =
          x.values.data() + ((image * x.height + r - padding) * x.width + c - padding) * x.channels;
      const double* const w = weight.data() + (o * kernel * kernel + k) * x.channels;
      y.values[i] = std::inner_product(in, in + x.channels, w, y.values[i]);
    }
  }
  normalize(name + ".normalization", y, running);
  return y;
}

/// Max pooling of 3 x 3 with stride 2 and padding 1.
ResnetTwin::Maps ResnetTwin::pooled(const Maps& x) const {
  Maps y{(x.height - 1) / 2 + 1, (x.width - 1) / 2 + 1, x.channels, {}};
  y.values.assign(batch_.images() * y.height * y.width * y.channels, -std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const std::size_t c = i % x.channels, column = i / x.channels % x.width, row = i / x.channels / x.width % x.height;
    const std::size_t image = i / x.channels / x.width / x.height;
    // Windows r with 2 r - 1 <= row <= 2 r + 1.
    for (std::size_t r = row / 2; r <= std::min((row + 1) / 2, y.height - 1); ++r) {
      for (std::size_t s = column / 2; s <= std::min((column + 1) / 2, y.width - 1); ++s) {
        double& largest = y.values[((image * y.height + r) * y.width + s) * x.channels + c];
        largest = std::max(largest, x.values[i]);
      }
    }
  }
  return y;
}

ResnetTwin::Maps ResnetTwin::block(const std::string& name, const Maps& x, std::size_t out, std::size_t stride,
                                   bool running) const {
  Maps y = x;
  const auto layer = [&](std::size_t index, std::size_t channels, std::size_t kernel, std::size_t step) {
    if (index > 0) rectify(y.values);
    y = convolved(fmt::format("{}.layer.{}", name, index), y, channels, kernel, step, running);
  };
  if (shape_.bottleneck) {
    const bool early = shape_.downsample_in_bottleneck;
    layer(0, out / 4, 1, early ? stride : 1);
    layer(1, out / 4, 3, early ? 1 : stride);
    layer(2, out, 1, 1);
  } else {
    layer(0, out, 3, stride);
    layer(1, out, 3, 1);
  }
  const bool is_identity = x.channels == out && stride == 1;
  const Maps shortcut = is_identity ? x : convolved(name + ".shortcut", x, out, 1, stride, running);
  for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] += shortcut.values[i];
  rectify(y.values);
  return y;
}

Values ResnetTwin::logits(bool running) const {
  const bool pools = shape_.stem == families::ImageStem::imagenet;
  Maps x{shape_.height, shape_.width, shape_.channels, batch_.pixels};
  x = convolved("resnet.embedder.embedder", x, shape_.embedding, pools ? 7 : 3, pools ? 2 : 1, running);
  rectify(x.values);
  if (pools) x = pooled(x);
  for (std::size_t stage = 0; stage < shape_.hidden.size(); ++stage) {
    for (std::size_t i = 0; i < shape_.depths[stage]; ++i) {
      const bool shrinks = i == 0 && (stage > 0 || shape_.downsample_in_first_stage);
      x = block(fmt::format("resnet.encoder.stages.{}.layers.{}", stage, i), x, shape_.hidden[stage], shrinks ? 2 : 1,
                running);
    }
  }
  const Values &weight = named("classifier.1.weight"), &bias = named("classifier.1.bias");
  const std::size_t pixels = x.height * x.width;
  Values logits;
  for (std::size_t image = 0; image < batch_.images(); ++image) {
    for (std::size_t label = 0; label < twin_head.labels; ++label) {
      logits.push_back(bias[label]);
      for (std::size_t i = 0; i < pixels * x.channels; ++i) {
        logits.back() += x.values[image * pixels * x.channels + i] * weight[label * x.channels + i % x.channels] /
                         static_cast<double>(pixels);
      }
    }
  }
  return logits;
}

Values ResnetTwin::logits() const { return logits(false); }
Values ResnetTwin::running_logits() const { return logits(true); }

Values ResnetTwin::losses_of(const Values& logits) const {
  Values losses;
  std::size_t image = 0;
  const auto smoothing = static_cast<double>(twin_head.label_smoothing);
  for (const std::size_t size : batch_.groups) {
    losses.push_back(0.0);
    for (const std::size_t end = image + size; image < end; ++image) {
      const double* const row = logits.data() + image * twin_head.labels;
      double sum = 0.0;
      for (std::size_t label = 0; label < twin_head.labels; ++label) sum += std::exp(row[label]);
      for (std::size_t label = 0; label < twin_head.labels; ++label) {
        const bool is_target = static_cast<std::int32_t>(label) == batch_.labels[image];
        const double target = smoothing / static_cast<double>(twin_head.labels) + (is_target ? 1.0 - smoothing : 0.0);
        losses.back() += target * (std::log(sum) - row[label]);
      }
    }
  }
  return losses;
}

Values ResnetTwin::losses() const { return losses_of(logits()); }

}  // namespace mylos::tests
