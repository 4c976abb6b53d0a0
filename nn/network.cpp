#include "nn/network.hpp"

#include "core/base/options/option_values.hpp"
#include "core/base/setting_error.hpp"
#include "nn/linear_adapters.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

namespace mylos::nn {
namespace {

using Purpose = ParameterStore::Purpose;

/// The head's unit is the last one.
std::size_t head_unit(const ParameterTable& table) { return table.network_units() - 1; }

template <class T>
ParameterTable network_table(const Body<T>& body, const Head<T>& head) {
  ParameterTable::Builder builder;
  body.add_units(builder);
  builder.unit("head").head(true);
  head.add_tensors(builder, body.width());
  builder.head(false);
  body.add_final_tensors(builder);
  return builder.build();
}

/// Returns the operations per row of one product with each of a unit's adapters.
double adapter_flops(const ParameterTable& table, std::size_t unit) {
  double flops = 0.0;
  for (const ParameterTensor& tensor : table.tensors()) {
    if (tensor.adapter && tensor.unit == unit) flops += 2.0 * static_cast<double>(tensor.size);
  }
  return flops;
}

/// Returns the part of a unit's weights, its matrices, that is trained; those of the units it borrows from, if it has
/// none of its own. A product for several weights of which one is trained is computed whole, which this does not count.
double trained_part(const ParameterTable& table, std::size_t unit) {
  const auto part_of = [&](std::span<const std::size_t> units) -> std::optional<double> {
    double all = 0.0, trained = 0.0;
    for (const ParameterTensor& tensor : table.tensors()) {
      if (tensor.shape.size() == 1 || tensor.adapter || std::ranges::count(units, tensor.unit) == 0) continue;
      all += static_cast<double>(tensor.size);
      if (tensor.group.trainable) trained += static_cast<double>(tensor.size);
    }
    return all > 0.0 ? std::optional(trained / all) : std::nullopt;
  };
  if (const auto own = part_of(table.parts(unit))) return *own;
  return part_of(table.read_by(unit)).value_or(table.units()[unit].trained ? 1.0 : 0.0);
}

template <class T>
class Network final : public Model {
 public:
  Network(std::unique_ptr<Body<T>> body, std::unique_ptr<Head<T>> head)
      : body_(std::move(body)), head_(std::move(head)), table_(network_table(*body_, *head_)) {
    body_->find_tensors(table_);
    head_->find_tensors(table_);
    note_trained_parts();
  }

  const ParameterTable& table() const override { return table_; }
  void freeze(std::span<const std::string> patterns) override {
    freeze_tensors(table_, patterns);
    note_trained_parts();
  }
  void adapt(const Adapters& adapters) override {
    add_adapters(table_, adapters);
    body_->find_tensors(table_);
    adapters_ = all_adapters(table_);
    note_trained_parts();
  }
  bool can_recompute(Recompute recompute) const override { return body_->can_recompute(recompute); }
  void prepare(const ExecutionSpace& space, const BatchShapes& batches, Purpose purpose) const override {
    body_->prepare(space, batches, purpose);
  }
  std::size_t scratch_bytes(const BatchShape& shape, Purpose purpose, const TeamProcessor& processor) const override {
    return body_->scratch_bytes(shape, purpose, processor);
  }
  void plan(Arena& arena, const BatchShape& shape, Purpose purpose, Recompute recompute) const override {
    const auto units = body_->begin(arena, shape, purpose, recompute, first_of_body_);
    const AdapterArrays adapters(arena, adapters_, precision_of<T>, shape.rows, purpose);
    head_->plan(arena, shape, units->output(), purpose);
  }

  void train(const Pass& pass, const Batch& batch, float scale, const Vector<float>& losses) const override;
  Matrix<float> predict(const Pass& pass, const Batch& batch, const Vector<float>& losses) const override;
  std::vector<GemmProduct> products(const BatchShape& shape, Purpose purpose) const override;
  std::vector<double> unit_flops(const BatchShape& shape, Recompute recompute) const override;

 private:
  /// The last unit before the head is never recomputed, nor are those that no backward pass reaches.
  bool is_recomputed(std::size_t unit) const {
    return unit + 1 < head_unit(table_) && unit >= table_.first_trained_unit();
  }
  /// Counting operations goes over no tensors, since plans do it for each micro-batch.
  void note_trained_parts() {
    trained_parts_.clear();
    adapter_flops_.clear();
    for (std::size_t unit = 0; unit < table_.network_units(); ++unit) {
      trained_parts_.push_back(trained_part(table_, unit));
      adapter_flops_.push_back(adapter_flops(table_, unit));
    }
    first_of_body_ = table_.network_units();
    for (const ParameterTensor& tensor : table_.tensors()) {  // those of adapters come after those of later units
      if (tensor.group.trainable && !tensor.in_head) first_of_body_ = std::min(first_of_body_, tensor.unit);
    }
  }
  bool trains_body() const { return first_of_body_ < table_.network_units(); }

  std::unique_ptr<Body<T>> body_;
  std::unique_ptr<Head<T>> head_;
  ParameterTable table_;
  std::vector<LinearAdapters> adapters_;  ///< of all layers
  std::vector<double> trained_parts_;     ///< of each unit's weights
  std::vector<double> adapter_flops_;     ///< of each unit
  std::size_t first_of_body_ = 0;  ///< the first unit that trains tensors of the body; network_units() if none does
};

template <class T>
void Network<T>::train(const Pass& given, const Batch& batch, float scale, const Vector<float>& losses) const {
  given.arena.rewind(0);
  const auto units = body_->begin(given.arena, batch.shape(), Purpose::training, given.recompute, first_of_body_);
  AdapterArrays adapters(given.arena, adapters_, precision_of<T>, batch.shape().rows, Purpose::training);
  adapters.set_batch(batch);
  Pass pass = given;
  pass.adapters = &adapters;
  const auto end = [&](std::size_t unit) {
    pass.hooks.release(unit);
    if (table_.units()[unit].trained) pass.hooks.gradients_ready(unit);
  };
  forward_units(pass, batch, *units);
  head_->train(pass, batch, scale, units->output(), losses);
  if (trains_body()) units->finish_backward(pass, batch);
  end(head_unit(table_));
  for (std::size_t unit = head_unit(table_); unit-- > table_.first_trained_unit();) {
    pass.hooks.acquire(unit);
    if (pass.recompute != Recompute::none && is_recomputed(unit)) units->restore(pass, batch, unit);
    pass.is_first_trained = unit == table_.first_trained_unit();
    units->backward(pass, batch, unit);
    end(unit);
  }
}

template <class T>
Matrix<float> Network<T>::predict(const Pass& given, const Batch& batch, const Vector<float>& losses) const {
  given.arena.rewind(0);
  const auto units = body_->begin(given.arena, batch.shape(), Purpose::inference, Recompute::none, 0);
  AdapterArrays adapters(given.arena, adapters_, precision_of<T>, batch.shape().rows, Purpose::inference);
  Pass pass = given;
  pass.adapters = &adapters;
  forward_units(pass, batch, *units);
  const Matrix<float> outputs = head_->predict(pass, batch, units->output(), losses);
  pass.hooks.release(head_unit(table_));
  return outputs;
}

template <class T>
std::vector<GemmProduct> Network<T>::products(const BatchShape& shape, Purpose purpose) const {
  const auto trains = [&](std::size_t begin, std::size_t end) {
    return std::accumulate(trained_parts_.begin() + begin, trained_parts_.begin() + end, 0.0) > 0.0;
  };
  const auto taken = [](std::vector<GemmProduct> products, bool trained) {
    if (!trained) std::erase_if(products, [](const auto& one) { return one.name.ends_with("/weight-gradient"); });
    return products;
  };
  const std::size_t head = head_unit(table_);
  std::vector<GemmProduct> all = taken(body_->products(shape, purpose), trains(0, head));
  std::ranges::move(adapter_products(adapters_, shape.rows, precision_of<T>, purpose), std::back_inserter(all));
  std::ranges::move(taken(head_->products(shape, purpose), trains(head, head + 1)), std::back_inserter(all));
  return all;
}

template <class T>
std::vector<double> Network<T>::unit_flops(const BatchShape& shape, Recompute recompute) const {
  std::vector<double> flops;
  const auto add = [&](UnitFlops unit) {
    const double adapters = adapter_flops_[flops.size()] * static_cast<double>(shape.rows);
    unit.weight_gradients = unit.weight_gradients * trained_parts_[flops.size()] + adapters;
    unit.again *= 1.0 + adapters / std::max(unit.forward, 1.0);
    unit.forward += adapters;
    unit.input_gradients = flops.size() < table_.first_trained_unit() ? 0.0 : unit.input_gradients + adapters;
    flops.push_back(unit.sum());
  };
  for (std::size_t unit = 0; unit < head_unit(table_); ++unit) {
    add(body_->training_flops(unit, shape, is_recomputed(unit) ? recompute : Recompute::none));
  }
  const double products = head_->training_flops(shape) / 3.0;
  add({.forward = products, .input_gradients = trains_body() ? products : 0.0, .weight_gradients = products});
  return flops;
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  return parse_count(text, {.smallest = 0, .largest = std::numeric_limits<std::uint64_t>::max()});
}

/// Returns the numbers of "0-5"; nullopt for other parts of a pattern.
std::optional<std::pair<std::uint64_t, std::uint64_t>> range_in(std::string_view part) {
  const std::size_t dash = part.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = number_in(part.substr(0, dash)), last = number_in(part.substr(dash + 1));
  return first && last ? std::optional(std::pair(*first, *last)) : std::nullopt;
}

/// Returns for each range of `pattern` the pattern with the range's last number in its place: "stages.3.layers.0-2" and
/// "stages.0-3.layers.2" for "stages.0-3.layers.0-2".
std::vector<std::string> ends_of(const std::string& pattern) {
  const std::vector<std::string> parts = split(pattern, '.');
  std::vector<std::string> ends;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto range = range_in(parts[i]);
    if (!range) continue;
    std::vector<std::string> end = parts;
    end[i] = std::to_string(range->second);
    ends.push_back(fmt::format("{}", fmt::join(end, ".")));
  }
  return ends;
}

/// "0-5" selects the numbers 0 to 5, and "layers" also means units called "layer".
bool selects_part(std::string_view pattern, std::string_view part) {
  if (pattern == part || (pattern.ends_with('s') && pattern.substr(0, pattern.size() - 1) == part)) return true;
  const auto range = range_in(pattern);
  const auto number = number_in(part);
  return range && number && range->first <= *number && *number <= range->second;
}

/// A pattern selects a unit by the first parts of its name: "stages.0" all blocks of a stage.
bool selects_unit(std::string_view pattern, std::string_view unit) {
  const std::vector<std::string> wanted = split(pattern, '.'), parts = split(unit, '.');
  return wanted.size() <= parts.size() && std::equal(wanted.begin(), wanted.end(), parts.begin(), selects_part);
}

bool selects(const std::string& pattern, const ParameterTable& table, const ParameterTensor& tensor) {
  if (pattern == "body") return !tensor.in_head;
  if (pattern == "head") return tensor.in_head;
  return selects_unit(pattern, table.units()[tensor.unit].name) ||
         fnmatch(pattern.c_str(), tensor.name.c_str(), 0) == 0;
}

}  // namespace

template <class T>
void forward_units(const Pass& pass, const Batch& batch, BodyPass<T>& units) {
  const std::size_t head = head_unit(pass.parameters.table());
  for (std::size_t unit = 0; unit < head; ++unit) {
    pass.hooks.acquire(unit);
    units.forward(pass, batch, unit);
    pass.hooks.release(unit);
  }
  pass.hooks.acquire(head);
  units.finish(pass, batch);
}

template <class T>
std::unique_ptr<Model> make_network(std::unique_ptr<Body<T>> body, std::unique_ptr<Head<T>> head) {
  return std::make_unique<Network<T>>(std::move(body), std::move(head));
}

#define MYLOS_INSTANTIATE(T)                                                                           \
  template std::unique_ptr<Model> make_network<T>(std::unique_ptr<Body<T>>, std::unique_ptr<Head<T>>); \
  template void forward_units<T>(const Pass&, const Batch&, BodyPass<T>&);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

void freeze_tensors(ParameterTable& table, std::span<const std::string> patterns) {
  for (const std::string& pattern : patterns) {
    const auto selects_none = [&](const std::string& part) {
      return std::ranges::none_of(table.tensors(), [&](const auto& tensor) { return selects(part, table, tensor); });
    };
    const bool is_empty = selects_none(pattern);
    const std::vector<std::string> ends = ends_of(pattern);
    const auto beyond = std::ranges::find_if(ends, selects_none);
    if (!is_empty && beyond == ends.end()) continue;
    if (pattern == "head") {
      throw SettingError("freeze", pattern, "the head has no tensors of its own; it reads those of the embeddings");
    }
    const std::size_t last = table.units().size() - 1;
    const auto unit = [&](std::size_t i) { return table.units()[std::min(i, last)].name; };
    throw SettingError(
        "freeze", pattern,
        fmt::format("{}selects no tensor of the model; its units are {}, {} to {} and {}, and its first tensor is {}",
                    is_empty ? "" : *beyond + " ", unit(0), unit(1), unit(std::max<std::size_t>(last, 1) - 1),
                    unit(last), table.tensor(0).name));
  }
  table.freeze([&](const ParameterTensor& tensor) {
    return std::ranges::any_of(patterns, [&](const std::string& pattern) { return selects(pattern, table, tensor); });
  });
  if (std::ranges::any_of(table.tensors(), [](const ParameterTensor& tensor) { return tensor.group.trainable; }))
    return;
  throw SettingError("freeze", fmt::format("{}", fmt::join(patterns, ",")),
                     "no tensor of the model is left to train; leave out a pattern");
}

}  // namespace mylos::nn
