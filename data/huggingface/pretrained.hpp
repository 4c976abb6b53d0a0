#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/files.hpp"
#include "core/base/python_json.hpp"
#include "data/huggingface/safetensors.hpp"
#include "data/huggingface/weight_files.hpp"
#include "data/huggingface/weight_files_writer.hpp"

/// Model directories of Hugging Face, whatever the model: weights in safetensors, config.json, and the tokenizer's
/// files. What the configuration and those files mean is known to the model's family (bert_config.hpp) and the
/// tokenizer (wordpiece_files.hpp).
namespace mylos::data {

/// A tensor the caller wants, by its Hugging Face name (bert.encoder.layer.0.attention.self.query.weight). One that is
/// optional may be absent from the files, like the head of a model that was never fine-tuned.
struct TensorSpec {
  std::string name;
  std::vector<std::size_t> shape;
  bool optional = false;
  bool is_count = false;  ///< whole numbers (I32 or I64), read as float
};

/// The optional tensors that the weight files lack, and the tensors in them that were ignored.
struct WeightReport {
  std::vector<std::string> missing;
  std::vector<std::string> ignored;
};

/// "N tensors not used for <purpose> are ignored: ..." on one line; empty where none was ignored.
std::string ignored_line(const WeightReport& report, std::string_view purpose);

/// Reads values of one tensor, row-major, from its element `first` on.
using TensorReader = std::function<void(std::size_t first, std::span<float> values)>;

/// Takes wanted row `row`, of whose values it reads what it needs before it returns.
using WeightSink = std::function<void(std::size_t row, const TensorReader& read)>;

/// A file of a model directory beside its configuration and weights.
struct ModelFile {
  std::string name;  ///< in the directory
  std::string bytes;
};

/// A model directory. Errors are std::runtime_error naming file, key or tensor.
class PretrainedModel {
 public:
  /// Reads config.json, which must be a JSON object; nothing else is read or checked yet.
  explicit PretrainedModel(std::filesystem::path directory);

  const std::filesystem::path& directory() const { return directory_; }
  std::filesystem::path config_path() const { return directory_ / "config.json"; }
  /// All of config.json, its keys in the order of the file.
  const OrderedJson& config() const { return config_; }
  /// As model_type_of: "bert", "llama", ...; empty where config.json does not say.
  std::string model_type() const;

  /// Whether there are weights in any form, be it one that cannot be read.
  bool has_weights() const { return has_weight_files(directory_); }
  /// The type of most of the weights; float32 where they have none of floating-point numbers. Errors as of WeightFiles.
  Precision weights_precision() const;

  /// Those of `names` that the directory has, in the order of `names`.
  std::vector<ModelFile> read_files(std::span<const std::string_view> names) const;

  /// Lets `sink` read each wanted tensor as float, in the order wanted. `naming` says what the model's files may call
  /// them and which others to ignore. Before the first value is read it throws where a tensor is missing and not
  /// optional, has another shape or no type of floating-point numbers, comes under two names, or is neither wanted nor
  /// ignored.
  WeightReport read_weights(std::span<const TensorSpec> wanted, const TensorNaming& naming,
                            const WeightSink& sink) const;

 private:
  std::filesystem::path directory_;
  OrderedJson config_;
};

/// JSON as it is written into a model directory: indented by two spaces, with a newline at the end.
std::string model_json_text(const OrderedJson& json);

/// Writes a model directory that transformers loads: `config` as config.json, `files` as they are, and the weights
/// piece by piece. It appears whole or not at all, and replaces an older one at `directory`. The caller is its only
/// writer.
class PretrainedWriter {
 public:
  /// Throws std::invalid_argument where a file's name is a path, comes twice, or is config.json or the weights'.
  PretrainedWriter(const std::filesystem::path& directory, const OrderedJson& config, std::span<const ModelFile> files,
                   std::span<const TensorShape> weights, const WeightFormat& format = {});
  /// The next values, as SafetensorsWriter takes them.
  void write(std::span<const float> values) { weights_.write(values); }
  void commit();

 private:
  StagedDirectory staged_;
  WeightFilesWriter weights_;
};

/// The same for weights that are in memory.
void write_pretrained(const std::filesystem::path& directory, const OrderedJson& config,
                      std::span<const ModelFile> files, std::span<const NamedTensor> weights,
                      const WeightFormat& format = {});

}  // namespace mylos::data
