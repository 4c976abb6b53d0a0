#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

/// Families of models that the program trains, each with a model and data that are small enough for a test.
namespace mylos::tests {

struct Family {
  std::string name;                  ///< "bert"
  std::string ending;                ///< of files of data; empty where data are a directory
  std::vector<std::string> options;  ///< of train, for the length of the samples
  std::vector<std::string> noise;    ///< options with which a step draws random numbers; empty where it never does
  std::string metric;                ///< one beside the loss, in metrics.jsonl
  std::string title;                 ///< what pages call it
  std::string row;                   ///< a parameter, by its name in a checkpoint
  std::string slot;                  ///< of its optimizer, by its name in a checkpoint
  std::string work, samples;         ///< what a step counts, by their names in metrics.jsonl
  std::string recomputation;         ///< one that the model has
  bool drifts;                       ///< a rounding flips rectifiers, so that only deterministic runs stay together
  void (*write_model)(const std::filesystem::path& directory);
  void (*write_data)(const std::filesystem::path& path);  ///< 12 samples to train and to evaluate on
};

const Family& bert_family();
/// It begins from the initialiser, and its documents bring their ids.
const Family& llama_family();
/// It begins from the initialiser, and normalises over groups of one image, so that a sample is an image.
const Family& resnet_family();

struct TinyLlama {
  std::size_t vocabulary = 29, positions = 32;
  std::size_t hidden = 16, layers = 2, feed_forward = 24, heads = 4, key_value_heads = 2;
};

/// Writes a directory with a configuration only.
void write_tiny_llama(const std::filesystem::path& directory, const TinyLlama& model = {});

/// JSON lines of `input_ids` below 29, each counting upwards from where it begins, of 4 to 10 ids; of `length` where it
/// is not 0.
std::string tiny_documents(std::size_t count, std::size_t length = 0);

}  // namespace mylos::tests
