#include "core/base/median.hpp"

#include "core/base/error.hpp"

#include <algorithm>
#include <cstddef>

namespace mylos {

double median(std::vector<double> values) {
  require(!values.empty(), "median: no values");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace mylos
