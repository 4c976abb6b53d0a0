#include "data/huggingface/sentencepiece_files.hpp"

#include <fmt/format.h>

#include <system_error>

#include "core/base/error.hpp"

namespace mylos::data {

std::optional<SentencePieceTokenizer> load_sentencepiece(const std::filesystem::path& directory,
                                                         std::size_t vocabulary) {
  const std::filesystem::path file = directory / sentencepiece_file;
  std::error_code unreadable;  // reported when the file is read
  if (!std::filesystem::exists(file, unreadable)) return std::nullopt;
  auto tokenizer = SentencePieceTokenizer::load(file);
  ensure(tokenizer.size() <= vocabulary, fmt::format("{}: has {} pieces, and the model's vocab_size is {}",
                                                     file.string(), tokenizer.size(), vocabulary));
  return tokenizer;
}

}  // namespace mylos::data
