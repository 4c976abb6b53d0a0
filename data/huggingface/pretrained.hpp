#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/files/file_reader.hpp"
#include "core/base/text/python_json.hpp"
#include "data/huggingface/safetensors.hpp"
#include "data/huggingface/weight_files.hpp"
#include "data/huggingface/weight_files_writer.hpp"

/// Hugging Face model directories, independent of the model: weights in safetensors, config.json, and the tokenizer's
/// files. The model's family (bert_config.hpp) interprets the configuration, and the tokenizer (wordpiece_files.hpp)
/// its files.
namespace mylos::data {

/// A requested tensor, by its Hugging Face name (bert.encoder.layer.0.attention.self.query.weight). An optional tensor
/// may be absent from the files, like the head of a model that was never fine-tuned.
struct TensorSpec {
  std::string name;
  std::vector<std::size_t> shape;
  bool optional = false;
  bool is_count = false;  ///< integers (I32 or I64), read as float
};

/// Optional tensors that are missing in the weight files, and tensors in the files that were ignored.
struct WeightReport {
  std::vector<std::string> missing;
  std::vector<std::string> ignored;
};

/// Formats "a, b, c and 4 more"; lists at most 8 names.
std::string listed(const std::vector<std::string>& names);

/// Formats "N tensors not used for <purpose> are ignored: ..." on one line. Empty if none were ignored.
std::string ignored_line(const WeightReport& report, std::string_view purpose);

/// Reads values of one tensor in row-major order, starting at element `first`.
using TensorReader = std::function<void(std::size_t first, std::span<float> values)>;

/// Receives requested tensor number `row`, and reads the values that it needs before it returns.
using WeightSink = std::function<void(std::size_t row, const TensorReader& read)>;

/// Compares the requested tensors with those of the weights in `directory`, before any value is read. Throws as
/// PretrainedModel::read_weights does.
WeightReport match_weights(const WeightFiles& files, std::span<const TensorSpec> wanted, const TensorNaming& naming,
                           const std::string& directory);

/// Reads one tensor of weight files, which must outlive the reader; `is_count` reads integers.
TensorReader tensor_reader(const WeightEntry& entry, bool is_count = false);

/// A file of a model directory other than its configuration and weights.
struct ModelFile {
  std::string name;  ///< file name in the directory
  std::string bytes;
};

/// A model directory. Errors are std::runtime_error with the file, key or tensor.
class PretrainedModel {
 public:
  /// Reads config.json, which must be a JSON object. Reads and checks nothing else yet.
  PretrainedModel(const FileReader& files, std::filesystem::path directory);
  /// For a directory without config.json, whose content is known.
  PretrainedModel(std::filesystem::path directory, OrderedJson config);

  const std::filesystem::path& directory() const { return directory_; }
  std::filesystem::path config_path() const { return directory_ / "config.json"; }
  /// Returns all of config.json, with keys in file order.
  const OrderedJson& config() const { return config_; }
  /// Returns the family as model_type_of does: "bert", "llama", ...; empty if config.json does not name it.
  std::string model_type() const;

  /// True if there are weights in any format, even one that cannot be read.
  bool has_weights(const FileReader& files) const { return has_weight_files(files, directory_); }
  /// Returns the type of most of the weights, or float32 if none are floating-point numbers. Errors as for WeightFiles.
  Precision weights_precision(const FileReader& files) const;

  /// Reads the headers of the weight files and their index, if there are any, and compares the tensors of naming.copy,
  /// so that a process that uses copies opens only files whose values it reads. Errors as for read_weights.
  void read_weight_headers(const FileReader& files, const TensorNaming& naming = {}) const;

  /// Reads those of `names` that exist in the directory, in the order of `names`.
  std::vector<ModelFile> read_files(const FileReader& files, std::span<const std::string_view> names) const;

  /// Passes each requested tensor to `sink` as float, in the order of `wanted`. `naming` maps names in the files to
  /// canonical names and tells which other tensors to ignore. Throws before the first value is read if a tensor is
  /// missing and not optional, has another shape, is not of a floating-point type, appears under two names, or is
  /// neither requested nor ignored.
  WeightReport read_weights(const FileReader& files, std::span<const TensorSpec> wanted, const TensorNaming& naming,
                            const WeightSink& sink) const;

 private:
  std::filesystem::path directory_;
  OrderedJson config_;
};

/// Formats JSON as in a model directory: indented by two spaces, with a newline at the end.
std::string model_json_text(const OrderedJson& json);

/// Writes a model directory that transformers can load: `config` as config.json, `files` unchanged, and the weights as
/// a stream of pieces. The directory appears complete or not at all, and replaces an older one at `directory`. Only one
/// process may write to it at a time, or several that each have a `part`: then the first writer is created first, the
/// others are given its staged() directory, and it commits after all have finished.
class PretrainedWriter {
 public:
  /// Throws std::invalid_argument if a file's name is a path, appears twice, or is that of config.json or the weights.
  PretrainedWriter(const std::filesystem::path& directory, const OrderedJson& config, std::span<const ModelFile> files,
                   std::span<const TensorShape> weights, const WeightFormat& format = {});
  /// Creates one of several writers of the same directory. All but the first write only weights, to `staged`, and
  /// ignore `directory`, `config` and `files`. Throws std::runtime_error if `staged` does not exist.
  PretrainedWriter(const std::filesystem::path& directory, const OrderedJson& config, std::span<const ModelFile> files,
                   std::span<const TensorShape> weights, const WeightFormat& format, const WriterPart& part,
                   const std::filesystem::path& staged);
  /// The directory in which the files are until commit().
  const std::filesystem::path& staged() const { return path_; }
  /// Appends values, as WeightFilesWriter::write does.
  void write(std::span<const float> values) { weights_.write(values); }
  /// Completes this writer's files.
  void finish();
  /// Finishes if finish() was not called, and replaces the directory. Only for the first writer.
  void commit();

 private:
  std::unique_ptr<StagedDirectory> staged_;  ///< of the first writer; else null
  std::filesystem::path path_;
  WeightFilesWriter weights_;
  bool finished_ = false;
};

}  // namespace mylos::data
