#include "parallel/sharding/unit_batch.hpp"

#include <utility>

namespace mylos::parallel {

UnitBatch::UnitBatch(std::size_t least_bytes, Exchange exchange)
    : least_bytes_(least_bytes), exchange_(std::move(exchange)) {}

void UnitBatch::add(std::size_t unit, std::size_t bytes) {
  if (bytes >= least_bytes_) flush();
  units_.push_back(unit);
  bytes_ += bytes;
  if (bytes_ >= least_bytes_) flush();
}

void UnitBatch::flush() {
  if (units_.empty()) return;
  const std::vector<std::size_t> units = std::exchange(units_, {});
  bytes_ = 0;
  exchange_(units);
}

}  // namespace mylos::parallel
