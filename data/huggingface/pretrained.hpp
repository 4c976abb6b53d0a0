#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/files.hpp"
#include "data/huggingface/bert_config.hpp"
#include "data/huggingface/safetensors.hpp"
#include "data/tokenizer/wordpiece.hpp"

/// A pretrained BERT as a Hugging Face model directory: config.json, model.safetensors, vocab.txt and the tokenizer's
/// settings, read and written so that transformers and Mylos take each other's.
namespace mylos::data {

/// A tensor the caller wants, by its Hugging Face name (bert.encoder.layer.0.attention.self.query.weight). One that is
/// optional may be absent from the files, like the head of a model that was never fine-tuned.
struct TensorSpec {
  std::string name;
  std::vector<std::size_t> shape;
  bool optional = false;
};

/// What the weight files did not have of the optional tensors, and what they had that no question answering model uses.
struct WeightReport {
  std::vector<std::string> missing;
  std::vector<std::string> ignored;
};

/// "N tensors not used for question answering are ignored: ..." on one line; empty where none was ignored.
std::string ignored_line(const WeightReport& report);

/// Takes the values of wanted row `row`, row-major; they are gone after the call.
using WeightSink = std::function<void(std::size_t row, std::span<const float> values)>;

/// What a written model needs to tokenise as the one it came from. Held in memory: the source may be replaced
/// meanwhile.
struct TokenizerFiles {
  std::string vocabulary;      // the bytes of vocab.txt
  std::string tokenizer_json;  // the bytes of tokenizer.json; empty where there was none
  TokenizerOptions options;
};

/// A model directory, its configurations read and checked. Errors are std::runtime_error naming file, key or tensor.
class PretrainedModel {
 public:
  explicit PretrainedModel(std::filesystem::path directory);

  const std::filesystem::path& directory() const { return directory_; }
  const BertConfig& config() const { return config_; }
  const TokenizerOptions& tokenizer_options() const { return tokenizer_options_; }

  /// The path of vocab.txt. Throws where there is none.
  std::filesystem::path vocabulary_path() const;
  TokenizerFiles tokenizer_files() const;

  /// Gives `sink` each wanted tensor as float, in the order wanted. Legacy names (gamma, beta, no "bert." in front) are
  /// understood. Before the first value is given it throws where a tensor is missing and not optional, has another
  /// shape, comes under two names, or belongs to no BERT that answers questions.
  WeightReport read_weights(std::span<const TensorSpec> wanted, const WeightSink& sink) const;

 private:
  std::filesystem::path directory_;
  BertConfig config_;
  TokenizerOptions tokenizer_options_;
};

/// Throws where a vocabulary of `tokens` entries from `file` does not go with the model's embedding rows. Rows that
/// only pad the table to a multiple of 8, as NVIDIA's checkpoints have, may lack tokens.
void check_vocabulary_size(const BertConfig& config, std::size_t tokens, const std::filesystem::path& file);

/// The model's vocabulary. Throws where it does not go with the model's embedding rows.
Vocabulary load_vocabulary(const PretrainedModel& model);

/// Writes a model directory that transformers loads, values as float and piece by piece. It appears whole or not at
/// all, and replaces an older one at `directory`. The caller is its only writer.
class PretrainedWriter {
 public:
  PretrainedWriter(const std::filesystem::path& directory, const BertConfig& config, const TokenizerFiles& tokenizer,
                   std::span<const TensorShape> weights);
  /// The next values, as SafetensorsWriter takes them.
  void write(std::span<const float> values) { weights_.write(values); }
  void commit();

 private:
  StagedDirectory staged_;
  SafetensorsWriter weights_;
};

/// The same for weights that are in memory.
void write_pretrained(const std::filesystem::path& directory, const BertConfig& config, const TokenizerFiles& tokenizer,
                      std::span<const NamedTensor> weights);

}  // namespace mylos::data
