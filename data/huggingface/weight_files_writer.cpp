#include "data/huggingface/weight_files_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/text/python_json.hpp"

namespace mylos::data {
namespace {

std::uint64_t tensor_bytes(const TensorShape& tensor, Precision precision) {
  const std::size_t width = tensor.is_count ? sizeof(std::int64_t) : bytes_of(precision);
  return std::uint64_t{element_count(tensor.shape, tensor.name)} * width;
}

/// Throws if a name appears twice. The writer of each shard would find only duplicates within its shard.
void check_tensor_names(std::span<const TensorShape> tensors) {
  std::set<std::string_view> names;
  for (const TensorShape& tensor : tensors) {
    require(names.insert(tensor.name).second, fmt::format("tensor \"{}\" would be written twice", tensor.name));
  }
}

}  // namespace

std::vector<std::size_t> divide_into_shards(std::span<const TensorShape> tensors, const WeightFormat& format) {
  std::vector<std::size_t> counts(1);
  std::uint64_t bytes = 0;  // size of the last shard
  for (const TensorShape& tensor : tensors) {
    const std::uint64_t more = tensor_bytes(tensor, format.precision);
    if (counts.back() > 0 && bytes + more > format.shard_bytes) {
      counts.push_back(0);
      bytes = 0;
    }
    ++counts.back();
    bytes += more;
  }
  return counts;
}

WeightFilesWriter::WeightFilesWriter(std::filesystem::path directory, std::span<const TensorShape> tensors,
                                     const WeightFormat& format, const WriterPart& part)
    : directory_(std::move(directory)),
      tensors_(tensors.begin(), tensors.end()),
      format_(format),
      counts_(divide_into_shards(tensors, format)),
      part_(part),
      shard_(part.writer) {
  check_tensor_names(tensors);
  require(part.writer < part.writers && part.writers <= counts_.size(),
          fmt::format("writer {} of {} for {} weight files", part.writer, part.writers, counts_.size()));
  begin_shard();
}

std::filesystem::path WeightFilesWriter::path_of(std::size_t shard) const {
  if (counts_.size() == 1) return directory_ / format_.names.weights;
  return directory_ / fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, counts_.size());
}

void WeightFilesWriter::begin_shard() {
  const std::size_t first =
      std::accumulate(counts_.begin(), counts_.begin() + static_cast<std::ptrdiff_t>(shard_), std::size_t{0});
  const auto held = std::span(tensors_).subspan(first, counts_[shard_]);
  left_ = 0;
  for (const TensorShape& tensor : held) left_ += element_count(tensor.shape, tensor.name);
  file_.emplace(path_of(shard_), held, format_.precision);
}

void WeightFilesWriter::write(std::span<const float> values) {
  while (!values.empty()) {
    if (left_ == 0 && !is_last_shard()) {
      file_->commit();
      shard_ += part_.writers;
      begin_shard();
      continue;
    }
    const std::size_t count = is_last_shard() ? values.size() : std::min(left_, values.size());
    file_->write(values.first(count));
    left_ -= std::min(left_, count);
    values = values.subspan(count);
  }
}

void WeightFilesWriter::commit() {
  require(is_last_shard(),
          fmt::format("{} values of {} are missing, and later files", left_, path_of(shard_).filename().string()));
  file_->commit();
  if (counts_.size() > 1 && part_.writer == 0) write_index();
}

void WeightFilesWriter::check_files() const {
  for (std::size_t shard = 0; shard < counts_.size(); ++shard) {
    std::error_code unreadable;
    ensure(std::filesystem::is_regular_file(path_of(shard), unreadable),
           fmt::format("{} does not exist, although its writer has finished; choose an output directory that all nodes "
                       "share",
                       path_of(shard).string()));
  }
}

void WeightFilesWriter::write_index() const {
  std::map<std::string, std::string> files;
  std::uint64_t bytes = 0, parameters = 0;
  std::size_t tensor = 0;
  for (std::size_t shard = 0; shard < counts_.size(); ++shard) {
    const std::string file = path_of(shard).filename().string();
    for (std::size_t end = tensor + counts_[shard]; tensor < end; ++tensor) {
      files[tensors_[tensor].name] = file;
      bytes += tensor_bytes(tensors_[tensor], format_.precision);
      parameters += element_count(tensors_[tensor].shape, tensors_[tensor].name);
    }
  }
  OrderedJson index;
  index["metadata"] = {{"total_parameters", parameters}, {"total_size", bytes}};
  index["weight_map"] = files;
  write_text(directory_ / format_.names.index, index.dump(2) + "\n");
}

}  // namespace mylos::data
