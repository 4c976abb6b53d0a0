#include "core/base/precision.hpp"

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

std::optional<Precision> parse_precision(std::string_view name) {
  for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::float16}) {
    if (name == to_string(precision)) return precision;
  }
  return std::nullopt;
}

std::size_t bytes_of(Precision precision) { return precision == Precision::float32 ? 4 : 2; }

}  // namespace mylos
