#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/numeric.hpp"
#include "data/huggingface/safetensors.hpp"

namespace mylos::data {
namespace {

constexpr std::size_t chunk_elements = std::size_t{1} << 18;
constexpr std::size_t header_alignment = 8;  // bytes; lets readers map the tensors into memory

std::string_view type_name(Precision type) {
  switch (type) {
    case Precision::float32:
      return "F32";
    case Precision::bfloat16:
      return "BF16";
    case Precision::float16:
      return "F16";
  }
  fail("unknown precision");
}

std::string header_text(std::span<const TensorShape> tensors, Precision type) {
  nlohmann::ordered_json header;
  header["__metadata__"]["format"] = "pt";
  std::set<std::string_view> names;
  std::uint64_t begin = 0;
  for (const auto& tensor : tensors) {
    require(names.insert(tensor.name).second, fmt::format("tensor \"{}\" would be written twice", tensor.name));
    const std::size_t width = tensor.is_count ? sizeof(std::int64_t) : bytes_of(type);
    const auto end = begin + element_count(tensor.shape, tensor.name) * width;
    header[tensor.name] = {
        {"dtype", tensor.is_count ? "I64" : type_name(type)}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  auto text = header.dump();
  text.resize((text.size() + header_alignment - 1) / header_alignment * header_alignment, ' ');
  return text;
}

template <class Target>
void write_converted(StagedFile& file, std::span<const float> values) {
  std::vector<Target> chunk;
  for (std::size_t first = 0; first < values.size(); first += chunk_elements) {
    const auto part = values.subspan(first, std::min(chunk_elements, values.size() - first));
    chunk.clear();
    for (const float value : part) chunk.push_back(static_cast<Target>(value));
    file.write(std::as_bytes(std::span(chunk)));
  }
}

void write_values(StagedFile& file, std::span<const float> values, Precision type) {
  switch (type) {
    case Precision::float32:
      file.write(std::as_bytes(values));
      break;
    case Precision::bfloat16:
      write_converted<bfloat16>(file, values);
      break;
    case Precision::float16:
      write_converted<half>(file, values);
      break;
  }
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, std::span<const TensorShape> tensors,
                                     Precision type)
    : file_(path), type_(type) {
  for (const auto& tensor : tensors) {
    expected_ += element_count(tensor.shape, tensor.name);
    if (stretches_.empty() || stretches_.back().is_count != tensor.is_count) stretches_.push_back({0, tensor.is_count});
    stretches_.back().end = expected_;
  }
  const auto header = header_text(tensors, type);
  const std::uint64_t header_bytes = header.size();
  file_.write(std::as_bytes(std::span(&header_bytes, 1)));
  file_.write(header);
}

void SafetensorsWriter::write(std::span<const float> values) {
  while (!values.empty()) {
    while (stretch_ + 1 < stretches_.size() && written_ == stretches_[stretch_].end) ++stretch_;
    const bool is_last = stretch_ + 1 >= stretches_.size();  // commit() reports excess values
    const std::size_t count = is_last ? values.size() : std::min(values.size(), stretches_[stretch_].end - written_);
    const bool is_count = !stretches_.empty() && stretches_[stretch_].is_count;
    if (is_count) write_converted<std::int64_t>(file_, values.first(count));
    if (!is_count) write_values(file_, values.first(count), type_);
    written_ += count;
    values = values.subspan(count);
  }
}

void SafetensorsWriter::commit() {
  require(written_ == expected_, fmt::format("{} values were written of tensors that have {}", written_, expected_));
  file_.commit();
}

}  // namespace mylos::data
