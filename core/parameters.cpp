#include "core/parameters.hpp"

#include "core/base/error.hpp"
#include "core/base/stable_hash.hpp"
#include "core/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace mylos {
namespace {

std::size_t product(std::span<const std::size_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

/// Sorts trained before frozen and decayed before not decayed tensors, so that elements an update kernel treats alike
/// are contiguous.
auto layout_order(const ParameterTensor& tensor) {
  return std::tuple(tensor.unit, !tensor.group.trainable, !tensor.group.decay, tensor.group.learning_rate_factor);
}

/// Sets offsets within units; `size_of(unit)` is the running size of a unit.
void lay_out(std::vector<ParameterTensor>& tensors, const std::function<std::size_t&(std::size_t)>& size_of) {
  std::ranges::stable_sort(tensors, {}, layout_order);
  for (ParameterTensor& tensor : tensors)
    tensor.offset = std::exchange(size_of(tensor.unit), size_of(tensor.unit) + tensor.size);
}

std::map<std::string, std::size_t, std::less<>> index_by_name(std::span<const ParameterTensor> tensors) {
  std::map<std::string, std::size_t, std::less<>> index;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    require(index.emplace(tensors[i].name, i).second,
            fmt::format("parameter table: two tensors are called {}", tensors[i].name));
  }
  return index;
}

ParameterTensor make_row(std::string name, std::vector<std::size_t> shape, Initializer initializer,
                         ParameterGroup group, std::size_t units) {
  require(units > 0, fmt::format("parameter table: tensor {} comes before the first unit", name));
  const std::size_t size = product(shape);
  require(!shape.empty() && size > 0, fmt::format("parameter table: tensor {} is empty", name));
  return {std::move(name), std::move(shape), units - 1, 0, size, group, initializer, {}};
}

std::size_t find_in(const std::map<std::string, std::size_t, std::less<>>& index, std::string_view name) {
  const auto found = index.find(name);
  if (found == index.end()) require(false, fmt::format("parameter table: no tensor is called {}", name));
  return found->second;
}

}  // namespace

std::size_t shard_size(std::size_t size, std::size_t shards) {
  require(shards > 0, "shards of a unit: none");
  if (shards == 1) return size;
  const std::size_t least = (size + shards - 1) / shards;
  return (least + slice_block - 1) / slice_block * slice_block;
}

ParameterTable::Builder& ParameterTable::Builder::unit(std::string name) {
  units_.push_back({std::move(name), 0, {}});
  return *this;
}

ParameterTable::Builder& ParameterTable::Builder::tensor(std::string name, std::vector<std::size_t> shape,
                                                         Initializer initializer, ParameterGroup group) {
  tensors_.push_back(make_row(std::move(name), std::move(shape), initializer, group, units_.size()));
  tensors_.back().in_head = in_head_;
  tensors_.back().stack = stack_;
  return *this;
}

ParameterTable::Builder& ParameterTable::Builder::linear_weight(std::string name, std::vector<std::size_t> shape,
                                                                Initializer initializer) {
  tensor(std::move(name), std::move(shape), initializer);
  tensors_.back().is_linear = true;
  return *this;
}

ParameterTable::Builder& ParameterTable::Builder::state(std::string name, std::vector<std::size_t> shape,
                                                        Initializer initializer, StateRule rule) {
  const ParameterGroup frozen{.decay = false, .learning_rate_factor = 1.0f, .trainable = false};
  state_tensors_.push_back(make_row(std::move(name), std::move(shape), initializer, frozen, units_.size()));
  state_tensors_.back().rule = rule;
  return *this;
}

ParameterTable::Builder& ParameterTable::Builder::borrow(std::string_view unit) {
  const auto found = std::ranges::find(units_, unit, &ParameterUnit::name);
  require(units_.end() - found > 1, fmt::format("parameter table: no earlier unit {} to borrow from", unit));
  units_.back().borrowed.push_back(static_cast<std::size_t>(found - units_.begin()));
  return *this;
}

ParameterTable::Builder& ParameterTable::Builder::head(bool begins) {
  in_head_ = begins;
  return *this;
}

ParameterTable::Builder& ParameterTable::Builder::stack(bool begins) {
  stack_ = begins ? ++stacks_ : 0;
  return *this;
}

ParameterTable ParameterTable::Builder::build() {
  ParameterTable table;
  table.units_ = std::move(units_);
  table.network_units_ = table.units_.size();
  table.state_sizes_.assign(table.units_.size(), 0);
  lay_out(tensors_, [&](std::size_t unit) -> std::size_t& { return table.units_[unit].size; });
  lay_out(state_tensors_, [&](std::size_t unit) -> std::size_t& { return table.state_sizes_[unit]; });
  table.tensors_ = std::move(tensors_);
  table.state_tensors_ = std::move(state_tensors_);
  table.separate_frozen();
  table.index_ = index_by_name(table.tensors_);
  table.state_index_ = index_by_name(table.state_tensors_);
  return table;
}

std::size_t ParameterTable::find(std::string_view name) const { return find_in(index_, name); }

std::optional<std::size_t> ParameterTable::look_up(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? std::nullopt : std::optional(found->second);
}

std::size_t ParameterTable::find_state(std::string_view name) const { return find_in(state_index_, name); }

std::size_t ParameterTable::observed_size() const { return observed_offset(state_sizes_.size()); }

std::size_t ParameterTable::observed_offset(std::size_t unit) const {
  return std::accumulate(state_sizes_.begin(), state_sizes_.begin() + static_cast<std::ptrdiff_t>(unit),
                         std::size_t{0});
}

std::vector<ParameterSegment> ParameterTable::segments(std::size_t unit) const {
  std::vector<ParameterSegment> segments;
  for (const ParameterTensor& tensor : tensors_) {
    if (tensor.unit != unit) continue;
    if (segments.empty() || segments.back().group != tensor.group)
      segments.push_back({tensor.offset, tensor.offset, tensor.group});
    segments.back().end = tensor.offset + tensor.size;
  }
  return segments;
}

std::size_t ParameterTable::size() const {
  return std::accumulate(units_.begin(), units_.end(), std::size_t{0},
                         [](std::size_t sum, const ParameterUnit& unit) { return sum + unit.size; });
}

std::size_t ParameterTable::frozen_size() const {
  return std::accumulate(
      tensors_.begin(), tensors_.end(), std::size_t{0},
      [](std::size_t sum, const ParameterTensor& tensor) { return sum + (tensor.group.trainable ? 0 : tensor.size); });
}

std::size_t ParameterTable::trained_size() const {
  return std::accumulate(units_.begin(), units_.end(), std::size_t{0}, [](std::size_t sum, const ParameterUnit& unit) {
    return sum + (unit.trained ? unit.size : 0);
  });
}

std::size_t ParameterTable::trained_units() const {
  return static_cast<std::size_t>(std::ranges::count(units_, true, &ParameterUnit::trained));
}

std::size_t ParameterTable::first_trained_unit() const {
  const auto first = std::ranges::find(units_, true, &ParameterUnit::trained);
  return static_cast<std::size_t>(first - units_.begin());
}

std::vector<std::size_t> ParameterTable::parts(std::size_t unit) const {
  std::vector<std::size_t> parts = {unit};
  if (units_[unit].rest) parts.push_back(*units_[unit].rest);
  return parts;
}

std::vector<std::size_t> ParameterTable::read_by(std::size_t unit) const {
  std::vector<std::size_t> read;
  const auto add = [&](std::size_t each) { std::ranges::copy(parts(each), std::back_inserter(read)); };
  for (const std::size_t borrowed : units_[unit].borrowed) add(borrowed);
  add(unit);
  return read;
}

void ParameterTable::freeze(const std::function<bool(const ParameterTensor&)>& is_frozen) {
  for (ParameterTensor& tensor : tensors_) {
    if (is_frozen(tensor)) tensor.group = {.decay = false, .trainable = false};
  }
  separate_frozen();
}

void ParameterTable::adapt(std::vector<ParameterTensor> adapters,
                           const std::function<bool(const ParameterTensor&)>& is_frozen) {
  adapted_ = true;
  const std::size_t own = tensors_.size();
  std::ranges::move(adapters, std::back_inserter(tensors_));
  index_ = index_by_name(tensors_);
  freeze([&](const ParameterTensor& tensor) { return &tensor < tensors_.data() + own && is_frozen(tensor); });
}

/// Gives each tensor its unit and offset anew.
void ParameterTable::separate_frozen() {
  for (std::size_t unit = 0; unit < network_units_; ++unit) {
    if (const auto rest = std::exchange(units_[unit].rest, std::nullopt)) {
      for (ParameterTensor& tensor : tensors_) tensor.unit = tensor.unit == *rest ? unit : tensor.unit;
    }
  }
  units_.resize(network_units_);
  const auto stack_of = [](const ParameterTensor& tensor) { return std::pair(tensor.stack, tensor.shape.size()); };
  std::set<std::pair<std::size_t, std::size_t>> trained_stacks;
  for (ParameterUnit& unit : units_) unit.trained = unit.size == 0;  // a unit without tensors of its own
  for (const ParameterTensor& tensor : tensors_) {
    if (!tensor.group.trainable) continue;
    units_[tensor.unit].trained = true;
    if (tensor.stack > 0) trained_stacks.insert(stack_of(tensor));
  }
  for (ParameterUnit& unit : units_) unit.size = 0;
  for (ParameterTensor& tensor : tensors_) {
    if (units_[tensor.unit].trained && !tensor.group.trainable && !trained_stacks.contains(stack_of(tensor))) {
      tensor.unit = rest_of(tensor.unit);
    }
    ParameterUnit& unit = units_[tensor.unit];
    tensor.offset = std::exchange(unit.size, unit.size + tensor.size);
  }
  for (ParameterUnit& unit : units_) unit.has_master = unit.trained || !adapted_;
  state_sizes_.resize(units_.size(), 0);
}

/// Returns the rest of a unit, which is added if there is none.
std::size_t ParameterTable::rest_of(std::size_t unit) {
  if (!units_[unit].rest) {
    units_[unit].rest = units_.size();
    units_.push_back({.name = units_[unit].name + ".frozen", .size = 0, .borrowed = {}, .trained = false});
  }
  return *units_[unit].rest;
}

void initialize(const ParameterTensor& tensor, std::uint64_t seed, std::size_t first, std::span<float> values) {
  check_range(tensor, first, values.size());
  const std::uint64_t stream = stable_hash(tensor.name);
  const auto draw = [&](const auto& standard) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(standard(first + i) * tensor.initializer.scale);
    }
  };
  switch (tensor.initializer.kind) {
    case Initializer::Kind::zeros:
      std::ranges::fill(values, 0.0f);
      return;
    case Initializer::Kind::ones:
      std::ranges::fill(values, 1.0f);
      return;
    case Initializer::Kind::normal:
      return draw([&](std::uint64_t element) { return normal(seed, stream, element); });
    case Initializer::Kind::uniform:
      return draw([&](std::uint64_t element) { return 2.0f * uniform(philox(seed, element, stream).word[0]) - 1.0f; });
  }
}

void initialize(const ParameterTensor& tensor, std::uint64_t seed, std::span<float> values) {
  require(values.size() == tensor.size, fmt::format("{}: {} values for {}", tensor.name, values.size(), tensor.size));
  initialize(tensor, seed, 0, values);
}

void check_range(const ParameterTensor& tensor, std::size_t first, std::size_t count) {
  require(first <= tensor.size && count <= tensor.size - first,
          fmt::format("tensor {}: values {} to {} of {}", tensor.name, first, first + count, tensor.size));
}

}  // namespace mylos
