#include <fmt/format.h>

#include <memory>
#include <set>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/text/printable.hpp"
#include "data/huggingface/pretrained.hpp"
#include "data/huggingface/weight_files.hpp"

namespace mylos::data {
namespace {

/// Throws if one of `files` would conflict with the configuration or the weights.
void check_names(std::span<const ModelFile> files, const DirectoryNames& reserved) {
  std::set<std::string_view> names = {reserved.config, reserved.weights};
  if (reserved.index != nullptr) names.insert(reserved.index);
  for (const ModelFile& file : files) {
    require(is_file_name(file.name),
            fmt::format("\"{}\" is not the name of a file in a model directory", printable(file.name)));
    require(names.insert(file.name).second,
            fmt::format("{}: a model directory holds only one file of this name", printable(file.name)));
  }
}

/// Creates the directory in which the first writer collects the files; null for the others, which must see it. Removes
/// the leftovers of killed writers.
std::unique_ptr<StagedDirectory> stage(const std::filesystem::path& directory, std::span<const ModelFile> files,
                                       const DirectoryNames& names, const WriterPart& part,
                                       const std::filesystem::path& staged) {
  if (part.writer > 0) {
    std::error_code unreadable;
    ensure(std::filesystem::is_directory(staged, unreadable),
           fmt::format("{} does not exist on every node; choose an output directory that all nodes share",
                       staged.string()));
    return nullptr;
  }
  check_names(files, names);
  remove_abandoned(directory);
  return std::make_unique<StagedDirectory>(directory);
}

}  // namespace

std::string model_json_text(const OrderedJson& json) { return json.dump(2) + "\n"; }

PretrainedWriter::PretrainedWriter(const std::filesystem::path& directory, const OrderedJson& config,
                                   std::span<const ModelFile> files, std::span<const TensorShape> weights,
                                   const WeightFormat& format)
    : PretrainedWriter(directory, config, files, weights, format, {}, {}) {}

PretrainedWriter::PretrainedWriter(const std::filesystem::path& directory, const OrderedJson& config,
                                   std::span<const ModelFile> files, std::span<const TensorShape> weights,
                                   const WeightFormat& format, const WriterPart& part,
                                   const std::filesystem::path& staged)
    : staged_(stage(directory, files, format.names, part, staged)),
      path_(staged_ != nullptr ? staged_->path() : staged),
      weights_(path_, weights, format, part) {
  if (staged_ == nullptr) return;
  write_text(path_ / format.names.config, model_json_text(config));
  for (const ModelFile& file : files) write_text(path_ / file.name, file.bytes);
}

void PretrainedWriter::finish() {
  weights_.commit();
  finished_ = true;
}

void PretrainedWriter::commit() {
  require(staged_ != nullptr, "only the first writer of a directory commits it");
  if (!finished_) finish();
  weights_.check_files();
  staged_->commit();
}

}  // namespace mylos::data
