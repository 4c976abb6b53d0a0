#include "families/llama/sentencepiece_files.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "core/base/files.hpp"

namespace mylos::families {

std::optional<data::SentencePieceTokenizer> load_sentencepiece(const std::filesystem::path& directory,
                                                               std::size_t vocabulary) {
  const std::filesystem::path file = directory / sentencepiece_file;
  if (!is_present(file)) return std::nullopt;
  auto tokenizer = data::SentencePieceTokenizer::load(file);
  ensure(tokenizer.size() <= vocabulary, fmt::format("{}: has {} pieces, and the model's vocab_size is {}",
                                                     file.string(), tokenizer.size(), vocabulary));
  return tokenizer;
}

}  // namespace mylos::families
