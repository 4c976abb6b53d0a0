#include "core/numeric.hpp"

namespace mylos {

std::string_view to_string(Precision precision) {
  switch (precision) {
    case Precision::bfloat16:
      return "bfloat16";
    case Precision::float16:
      return "half";
    case Precision::float32:
      break;
  }
  return "float";
}

std::size_t bytes_of(Precision precision) { return precision == Precision::float32 ? 4 : 2; }

}  // namespace mylos
