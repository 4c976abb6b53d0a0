#include "families/interface/fast_tokenizer.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "data/tokenizer/json/json_tokenizer.hpp"

namespace mylos::families {

bool reads_fast_tokenizer(const FileReader& files, const std::filesystem::path& directory, std::string_view other) {
  if (!is_present(directory / fast_tokenizer_file)) return false;
  const std::filesystem::path config = directory / "tokenizer_config.json";
  if (!is_present(directory / other) || !is_present(config)) return true;
  const JsonLocation location(config.native());
  const Json json = read_json(files, config);
  const Json* fast = find_member(json, "use_fast", location);
  return fast == nullptr || fast->is_null() || as_bool(*fast, JsonLocation(location, "use_fast"));
}

std::unique_ptr<data::Tokenizer> load_fast_tokenizer(const FileReader& files, const std::filesystem::path& directory,
                                                     std::size_t vocabulary) {
  const std::filesystem::path file = directory / fast_tokenizer_file;
  auto tokenizer = std::make_unique<data::JsonTokenizer>(data::JsonTokenizer::load(files, file));
  ensure(tokenizer->size() <= vocabulary, fmt::format("{}: has {} tokens, and the model's vocab_size is {}",
                                                      file.string(), tokenizer->size(), vocabulary));
  return tokenizer;
}

}  // namespace mylos::families
