#pragma once

#include "core/numeric.hpp"

namespace mylos {

/// Calls f(T()) with the element type T of `precision`, and returns its result.
template <class F>
auto with_type(Precision precision, const F& f) {
  switch (precision) {
    case Precision::bfloat16:
      return f(bfloat16());
    case Precision::float16:
      return f(half());
    case Precision::float32:
      break;
  }
  return f(float());
}

}  // namespace mylos
