#include "app/checkpoint/checkpoint.hpp"
#include "core/base/error.hpp"
#include "core/base/text/quantities.hpp"
#include "core/base/text/standard_output.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

/// mylos checkpoint diff.
namespace mylos::app {
namespace {

using OrderedJson = nlohmann::ordered_json;
using parallel::CheckpointDataset;
using parallel::CheckpointIndex;

/// Reads the values of a dataset in order, any number at a time, independent of its checksum ranges.
class ValueStream {
 public:
  explicit ValueStream(const CheckpointDataset& dataset)
      : dataset_(dataset), buffer_(std::min<std::uint64_t>(dataset.size, parallel::checksum_elements)) {}

  float next() {
    if (at_ == count_) {
      const parallel::ChecksumRange& range = dataset_.ranges[range_++];
      read_range(dataset_, range, std::span(buffer_).first(range.count));
      at_ = 0;
      count_ = range.count;
    }
    return buffer_[at_++];
  }

 private:
  const CheckpointDataset& dataset_;
  std::vector<float> buffer_;
  std::size_t range_ = 0, at_ = 0, count_ = 0;
};

/// The difference of a tensor between two checkpoints.
struct TensorDifference {
  std::string name;
  std::string other = {};       ///< why it cannot be compared
  std::uint64_t differing = 0;  ///< elements with different bits
  std::uint64_t size = 0;
  double largest = 0.0;  ///< absolute difference; NaN if a value is NaN

  bool equal() const { return other.empty() && differing == 0; }
};

TensorDifference compare(const CheckpointDataset& one, const CheckpointDataset& two) {
  TensorDifference result{.name = one.name, .size = one.size};
  if (one.shape != two.shape) {
    result.other = fmt::format("shapes {} and {}", shape_text(one.shape), shape_text(two.shape));
    return result;
  }
  ValueStream left(one), right(two);
  for (std::uint64_t i = 0; i < one.size; ++i) {
    const float x = left.next(), y = right.next();
    if (std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y)) continue;
    ++result.differing;
    const double difference = std::fabs(static_cast<double>(x) - static_cast<double>(y));
    if (std::isnan(difference) || difference > result.largest) result.largest = difference;
  }
  return result;
}

std::vector<TensorDifference> compare(const CheckpointIndex& a, const CheckpointIndex& b) {
  std::vector<TensorDifference> differences;
  for (const CheckpointDataset& one : a.datasets) {
    const CheckpointDataset* two = b.find(one.name);
    differences.push_back(two != nullptr ? compare(one, *two)
                                         : TensorDifference{.name = one.name, .other = "only in the first"});
  }
  for (const CheckpointDataset& two : b.datasets) {
    if (a.find(two.name) == nullptr) differences.push_back({.name = two.name, .other = "only in the second"});
  }
  return differences;
}

void print_json(const std::vector<TensorDifference>& differences) {
  OrderedJson rows = OrderedJson::array();
  for (const TensorDifference& row : differences) {
    rows.push_back({{"name", row.name},
                    {"equal", row.equal()},
                    {"difference", row.other.empty() ? OrderedJson() : OrderedJson(row.other)},
                    {"elements", row.size},
                    {"differing", row.differing},
                    {"largest", std::isfinite(row.largest) ? OrderedJson(row.largest) : OrderedJson()}});
  }
  print_indented_json(rows);
}

}  // namespace

int diff_checkpoints(const Arguments& arguments) {
  const CheckpointIndex a = parallel::read_checkpoint_index(checkpoint_at(arguments.positional[1])),
                        b = parallel::read_checkpoint_index(checkpoint_at(arguments.positional[2]));
  const std::vector<TensorDifference> differences = compare(a, b);
  const auto equal = std::ranges::count_if(differences, &TensorDifference::equal);
  if (arguments.json) {
    print_json(differences);
  } else {
    for (const TensorDifference& row : differences) {
      if (row.equal()) continue;
      print(row.other.empty() ? fmt::format("{}: {} of {} values differ, by at most {:.3g}\n", row.name, row.differing,
                                            row.size, row.largest)
                              : fmt::format("{}: {}\n", row.name, row.other));
    }
    print(fmt::format("{} of {} tensors are equal, bit for bit\n", equal, differences.size()));
  }
  return static_cast<std::size_t>(equal) == differences.size() ? 0 : 1;
}

}  // namespace mylos::app
