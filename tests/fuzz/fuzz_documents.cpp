// The documents of a file and their samples. The first byte selects the format: p is PGN, t is plain text, f is JSON
// lines with the text in "f", and any other is JSON lines.

#include <stdexcept>

#include "data/text/samples.hpp"
#include "data/tokenizer/sentencepiece.hpp"
#include "tests/data/tokenizer/letters_model.hpp"
#include "tests/fuzz/inputs.hpp"

namespace {

using namespace mylos;

const data::SentencePieceTokenizer& letters() {
  static const data::SentencePieceTokenizer tokenizer = [] {
    const tests::MemoryFile file(tests::letters_model());
    return data::SentencePieceTokenizer::load(mylos::FileReader(), file.path());
  }();
  return tokenizer;
}

data::DocumentFormat format_of(char choice) {
  if (choice == 'p') return data::DocumentFormat::pgn;
  return choice == 't' ? data::DocumentFormat::plain_text : data::DocumentFormat::json_lines;
}

void check(const data::SampleSet& set, const data::SampleOptions& options) {
  tests::expect(set.starts.size() == set.size() + 1 && set.lines.size() == set.size(), "each sample has its arrays");
  tests::expect(set.starts.back() == set.ids.size(), "the samples hold all ids");
  for (std::size_t i = 0; i < set.size(); ++i) {
    tests::expect(set.length(i) >= 2 && set.length(i) <= options.max_length, "a sample has an allowed length");
    tests::expect(set.documents[i] < set.counts.documents, "a sample is of a document");
    tests::expect(set.predicted(i) > 0, "a sample has a supervised token");
  }
  tests::expect(set.supervised.empty() || set.supervised.size() == set.ids.size(), "each token is supervised or not");
  for (const auto id : set.ids) tests::expect(id >= 0 && id < 5, "ids are of the vocabulary");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const auto text = tests::as_text(bytes, size);
  const tests::MemoryFile file(text.substr(1));
  data::SampleOptions options = {.max_length = 4, .begin = 1, .end = 2, .vocabulary_size = 5};
  data::ReadOptions reading;
  reading.threads = 1;
  static const tests::InputDirectory model;
  static const bool is_written = [] {
    model.put("chat_template.jinja", "{% for m in messages %}{{ m.role[0] }}{{ m.content }}{% endfor %}");
    model.put("tokenizer_config.json", R"({"eos_token": "b"})");
    return true;
  }();
  tests::expect(is_written, "the model has a template");
  reading.model = model.path();
  if (text[0] == 'f') reading.text_field = "f";
  for (const auto longer : {data::LongDocuments::split, data::LongDocuments::truncate}) {
    options.long_documents = longer;
    try {
      const auto set = data::read_samples(file.path(), format_of(text[0]), &letters(), options, reading);
      check(set, options);
      data::describe_losses(set, options);
    } catch (const std::runtime_error&) {  // how bad input is rejected
    }
  }
  return 0;
}
