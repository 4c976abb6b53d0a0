#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/text/quantities.hpp"
#include "data/huggingface/safetensors.hpp"

namespace mylos::data {
namespace {

struct ElementType {
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array<ElementType, 15> element_types{{{"BOOL", 1},
                                                     {"U8", 1},
                                                     {"I8", 1},
                                                     {"F8_E4M3", 1},
                                                     {"F8_E5M2", 1},
                                                     {"I16", 2},
                                                     {"U16", 2},
                                                     {"F16", 2},
                                                     {"BF16", 2},
                                                     {"I32", 4},
                                                     {"U32", 4},
                                                     {"F32", 4},
                                                     {"I64", 8},
                                                     {"U64", 8},
                                                     {"F64", 8}}};

const Json& member(const Json& entry, const char* key, const std::string& what) {
  const auto found = entry.find(key);
  if (found == entry.end()) fail(fmt::format("{} has no \"{}\"", what, key));
  return *found;
}

std::vector<std::size_t> read_whole_numbers(const Json& value, const char* key, const std::string& what) {
  if (!value.is_array()) fail(fmt::format("{}: \"{}\" is not a list", what, key));
  std::vector<std::size_t> numbers;
  for (const auto& number : value) {
    if (!number.is_number_unsigned()) {
      fail(fmt::format("{}: \"{}\" holds {}, not a whole number of 0 or more", what, key, printable(number.dump())));
    }
    numbers.push_back(number.get<std::size_t>());
  }
  return numbers;
}

TensorInfo read_entry(const std::string& name, const Json& entry, const std::string& file) {
  const auto what = tensor_subject(file, name);
  if (!entry.is_object()) fail(fmt::format("{} is not described by an object", what));
  const auto& type = member(entry, "dtype", what);
  if (!type.is_string()) fail(fmt::format("{}: \"dtype\" is not a string", what));
  TensorInfo tensor;
  tensor.name = name;
  tensor.type = type.get<std::string>();
  const auto width = safetensors_type_bytes(tensor.type);
  if (width == 0) fail(fmt::format("{} has the unknown type {}", what, printable(tensor.type)));
  tensor.shape = read_whole_numbers(member(entry, "shape", what), "shape", what);
  const auto offsets = read_whole_numbers(member(entry, "data_offsets", what), "data_offsets", what);
  if (offsets.size() != 2) fail(fmt::format("{}: \"data_offsets\" has {} numbers, not 2", what, offsets.size()));
  tensor.begin = offsets[0];
  tensor.end = offsets[1];
  if (tensor.begin > tensor.end)
    fail(fmt::format("{} begins at byte {} and ends before, at {}", what, tensor.begin, tensor.end));
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(element_count(tensor.shape, what), width, &bytes)) {
    fail(fmt::format("{} of shape {} has more bytes than a file can have", what, shape_text(tensor.shape)));
  }
  if (bytes != tensor.end - tensor.begin) {
    fail(fmt::format("{} of shape {} and type {} needs {} bytes, its offsets [{}, {}) hold {}", what,
                     shape_text(tensor.shape), tensor.type, bytes, tensor.begin, tensor.end,
                     tensor.end - tensor.begin));
  }
  return tensor;
}

std::map<std::string, std::string> read_metadata(const Json& entry, const std::string& file) {
  if (!entry.is_object()) fail(fmt::format("{}: \"__metadata__\" is not an object", file));
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string())
      fail(fmt::format("{}: \"__metadata__\" entry \"{}\" is not a string", file, printable(key)));
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

/// Parses the header and rejects duplicate names, of which a JSON parser would silently keep the last.
Json parse_object(std::string_view text, const std::string& file) {
  std::set<std::string> names;
  std::string repeated;
  const auto watch = [&](const std::string& name) {
    if (!names.insert(name).second) repeated = name;
  };
  const Json header = parse_json(text, fmt::format("{}: its header", file), watch);
  if (!header.is_object()) fail(fmt::format("{}: its header is not a JSON object", file));
  if (!repeated.empty()) fail(fmt::format("{} comes twice", tensor_subject(file, repeated)));
  return header;
}

/// Checks that the tensors, sorted by position, cover the data without overlap or gap.
void check_positions(const std::vector<TensorInfo>& tensors, std::uint64_t data_bytes, const std::string& file) {
  std::uint64_t filled = 0;
  const TensorInfo* last = nullptr;
  for (const auto& tensor : tensors) {
    if (tensor.begin < filled) {
      fail(fmt::format("{} begins at byte {} and overlaps tensor \"{}\", which ends at {}",
                       tensor_subject(file, tensor.name), tensor.begin, printable(last->name), filled));
    }
    if (tensor.begin > filled) {
      fail(fmt::format("{} begins at byte {}, leaving a gap from {}", tensor_subject(file, tensor.name), tensor.begin,
                       filled));
    }
    if (tensor.end > data_bytes) {
      fail(fmt::format("{} ends at byte {}, but the file has {} bytes of data: it was cut short; fetch it again",
                       tensor_subject(file, tensor.name), tensor.end, data_bytes));
    }
    filled = tensor.end;
    last = &tensor;
  }
  if (filled != data_bytes) {
    fail(fmt::format("{}: its tensors end at byte {}, but {} bytes of data follow the header", file, filled,
                     data_bytes));
  }
}

}  // namespace

std::size_t safetensors_type_bytes(std::string_view name) {
  const auto* found = std::ranges::find(element_types, name, &ElementType::name);
  return found == element_types.end() ? 0 : found->bytes;
}

std::string tensor_subject(std::string_view file, std::string_view tensor) {
  return fmt::format("{}: tensor \"{}\"", file, printable(tensor));
}

std::size_t element_count(std::span<const std::size_t> shape, std::string_view what) {
  std::size_t count = 1;
  for (const auto size : shape) {
    if (__builtin_mul_overflow(count, size, &count)) {
      fail(fmt::format("{} of shape {} has more elements than can be counted", what, shape_text(shape)));
    }
  }
  return count;
}

SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_bytes, const std::string& file) {
  SafetensorsHeader header;
  const Json object = parse_object(json, file);
  for (const auto& [name, entry] : object.items()) {
    if (name == "__metadata__") {
      header.metadata = read_metadata(entry, file);
    } else {
      header.tensors.push_back(read_entry(name, entry, file));
    }
  }
  std::ranges::sort(header.tensors, {}, [](const TensorInfo& tensor) { return std::pair(tensor.begin, tensor.end); });
  check_positions(header.tensors, data_bytes, file);
  return header;
}

}  // namespace mylos::data
