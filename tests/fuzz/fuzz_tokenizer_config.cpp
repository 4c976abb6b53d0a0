// tokenizer_config.json of a model directory: the tokenizer takes the options that are accepted.

#include <stdexcept>

#include "data/huggingface/pretrained.hpp"
#include "tests/fuzz/inputs.hpp"

namespace {

constexpr const char* model_config =
    R"({"model_type": "bert", "vocab_size": 8, "hidden_size": 4, "num_hidden_layers": 1,
  "num_attention_heads": 1, "intermediate_size": 4, "max_position_embeddings": 8, "type_vocab_size": 2})";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const mylos::tests::InputDirectory directory;
  static const bool is_made = (directory.put("config.json", model_config), true);
  mylos::tests::expect(is_made, "the model's configuration");
  directory.put("tokenizer_config.json", mylos::tests::as_text(bytes, size));
  try {
    const mylos::data::PretrainedModel model(directory.path());
    const mylos::data::Vocabulary vocabulary({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "e", "É"}, "vocabulary");
    const mylos::data::WordPieceTokenizer tokenizer(vocabulary, model.tokenizer_options());
    mylos::tests::expect(tokenizer.tokenize("É").ids.size() == 1, "a letter is a token");
  } catch (const std::runtime_error&) {  // how bad input is refused
  }
  return 0;
}
