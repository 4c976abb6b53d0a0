#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

/// The model families that the program trains, each with a model and data small enough for tests.
namespace mylos::tests {

struct Family {
  std::string name;                  ///< "bert"
  std::string ending;                ///< file extension of data; empty if data is a directory
  std::vector<std::string> options;  ///< train options that set the sample length
  std::vector<std::string> noise;    ///< options that make steps draw random numbers; empty if there are none
  std::string metric;                ///< a metric other than the loss, in metrics.jsonl
  std::string title;                 ///< its title in HTML pages
  std::string work, samples;         ///< the units that steps count, by their names in metrics.jsonl
  std::string recomputation;         ///< a recomputation that the model supports
  bool drifts;                       ///< rounding errors flip ReLUs, so only deterministic runs agree for long
  void (*write_model)(const std::filesystem::path& directory);
  void (*write_data)(const std::filesystem::path& path);  ///< 12 samples for training and evaluation
};

const Family& bert_family();
/// Starts from random initial weights. Its documents contain token ids.
const Family& llama_family();
/// Starts from random initial weights. Normalises over groups of one image, so a sample is an image.
const Family& resnet_family();

struct TinyLlama {
  std::size_t vocabulary = 29, positions = 32;
  std::size_t hidden = 16, layers = 2, feed_forward = 24, heads = 4, key_value_heads = 2;
};

/// Writes a model directory with only a configuration.
void write_tiny_llama(const std::filesystem::path& directory, const TinyLlama& model = {});

/// Returns JSON lines of 4 to 10 `input_ids` below 29, or of `length` ids if that is not 0. The ids of each line count
/// upwards.
std::string tiny_documents(std::size_t count, std::size_t length = 0);

}  // namespace mylos::tests
