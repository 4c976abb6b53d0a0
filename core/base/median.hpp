#pragma once

#include <vector>

namespace mylos {

/// The middle of `values`, which are not none; of an even number the lower middle.
double median(std::vector<double> values);

}  // namespace mylos
