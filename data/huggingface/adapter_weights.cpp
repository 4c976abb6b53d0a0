#include "data/huggingface/adapter_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text/quantities.hpp"

namespace mylos::data {
namespace {

constexpr std::string_view prefix = "base_model.model.";  // PEFT's model holds LoRA's, which holds the base

constexpr DirectoryNames adapter_names{adapter_config_file, adapter_weights_file, nullptr};

std::string base_tensor_name(std::string_view name) {
  return std::string(name.starts_with(prefix) ? name.substr(prefix.size()) : name);
}

constexpr TensorNaming naming{.model = "the adapter", .canonical = base_tensor_name};

std::vector<float> values_of(const TensorReader& read, std::size_t count) {
  std::vector<float> values(count);
  read(0, values);
  return values;
}

}  // namespace

std::vector<std::string> modules_of(std::span<const TensorSpec> tensors) {
  std::set<std::string> modules;
  for (const TensorSpec& tensor : tensors) {
    for (std::size_t dot = tensor.name.find('.'); dot != std::string::npos; dot = tensor.name.find('.', dot + 1)) {
      modules.insert(tensor.name.substr(0, dot));
    }
  }
  return {modules.begin(), modules.end()};
}

std::string adapter_tensor_name(std::string_view tensor) { return fmt::format("{}{}", prefix, tensor); }

std::vector<TensorSpec> adapter_tensors(const AdapterConfig& config, std::span<const AdapterTarget> targets,
                                        std::span<const std::string> trained, std::span<const TensorSpec> base) {
  std::vector<TensorSpec> tensors;
  for (const auto& [module, rank, scale] : targets) {
    const auto weight = std::ranges::find(base, module + ".weight", &TensorSpec::name);
    require(weight != base.end() && weight->shape.size() == 2, fmt::format("{} is not a linear module", module));
    const std::size_t out = weight->shape[0], in = weight->shape[1];
    ensure(rank <= std::min(out, in),
           fmt::format("{} {} of {} is above {}, the smaller side of its weight {}", key_text(config, "r"), rank,
                       module, std::min(out, in), shape_text(weight->shape)));
    tensors.push_back({module + ".lora_A.weight", {rank, in}});
    tensors.push_back({module + ".lora_B.weight", {out, rank}});
  }
  for (const TensorSpec& tensor : base) {
    const bool is_trained =
        std::ranges::any_of(trained, [&](const auto& module) { return tensor.name.starts_with(module + "."); });
    if (is_trained) tensors.push_back({tensor.name, tensor.shape});
  }
  std::ranges::sort(tensors, {}, &TensorSpec::name);
  return tensors;
}

std::vector<TensorShape> written_adapter_tensors(std::span<const TensorSpec> tensors) {
  std::vector<TensorShape> written;
  for (const TensorSpec& tensor : tensors) written.push_back({adapter_tensor_name(tensor.name), tensor.shape});
  return written;
}

WeightFormat adapter_format(Precision precision) {
  return {.precision = precision, .shard_bytes = std::numeric_limits<std::uint64_t>::max(), .names = adapter_names};
}

AdapterWeights::AdapterWeights(const FileReader& files, const std::filesystem::path& directory,
                               std::span<const TensorSpec> wanted)
    : files_(files, directory, naming.canonical, adapter_names) {
  match_weights(files_, wanted, naming, directory.string());
}

MergedAdapter::MergedAdapter(const FileReader& files, const std::filesystem::path& directory,
                             const AdapterConfig& config, std::span<const std::string> linear_modules,
                             std::span<const TensorSpec> base)
    : targets_(adapter_targets(config, linear_modules)),
      weights_(files, directory, adapter_tensors(config, targets_, trained_modules(config, modules_of(base)), base)) {}

TensorReader MergedAdapter::merged(const TensorSpec& tensor, TensorReader base) const {
  if (weights_.contains(tensor.name)) return weights_.reader(tensor.name);
  const auto target =
      std::ranges::find_if(targets_, [&](const AdapterTarget& one) { return one.module + ".weight" == tensor.name; });
  if (target == targets_.end()) return base;
  const auto& [module, rank, scale] = *target;
  const std::size_t out = tensor.shape[0], in = tensor.shape[1];
  return [a = values_of(weights_.reader(module + ".lora_A.weight"), rank * in),
          b = values_of(weights_.reader(module + ".lora_B.weight"), out * rank), rank = rank, in,
          scale = static_cast<float>(scale), base = std::move(base)](std::size_t first, std::span<float> values) {
    base(first, values);
    std::vector<float> sums(in);
    for (std::size_t done = 0; done < values.size();) {
      const std::size_t row = (first + done) / in, column = (first + done) % in;
      const std::size_t count = std::min(in - column, values.size() - done);
      std::ranges::fill(sums, 0.0F);
      for (std::size_t k = 0; k < rank; ++k) {
        const float factor = b[row * rank + k];
        for (std::size_t i = 0; i < count; ++i) sums[i] += factor * a[k * in + column + i];
      }
      for (std::size_t i = 0; i < count; ++i) values[done + i] += scale * sums[i];
      done += count;
    }
  };
}

}  // namespace mylos::data
