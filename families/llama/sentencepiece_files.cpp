#include "families/llama/sentencepiece_files.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "data/tokenizer/sentencepiece.hpp"
#include "families/llama/llama_config.hpp"

namespace mylos::families {

std::unique_ptr<data::Tokenizer> load_llama_tokenizer(const FileReader& files, const std::filesystem::path& directory) {
  const std::size_t vocabulary = read_llama_config({files, directory / "config.json"}).vocabulary;
  if (reads_fast_tokenizer(files, directory, sentencepiece_file)) {
    return load_fast_tokenizer(files, directory, vocabulary);
  }
  const std::filesystem::path file = directory / sentencepiece_file;
  if (!is_present(file)) return nullptr;
  auto tokenizer = data::SentencePieceTokenizer::load(files, file);
  ensure(tokenizer.size() <= vocabulary, fmt::format("{}: has {} pieces, and the model's vocab_size is {}",
                                                     file.string(), tokenizer.size(), vocabulary));
  return std::make_unique<data::SentencePieceTokenizer>(std::move(tokenizer));
}

}  // namespace mylos::families
