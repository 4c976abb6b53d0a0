#pragma once

#include <vector>

namespace mylos {

/// Returns the median of `values`, which must not be empty; for an even count, the lower of the two middle values.
double median(std::vector<double> values);

}  // namespace mylos
