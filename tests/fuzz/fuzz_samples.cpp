// A valid sample file with forged contents: every sample read is within the ids, and every id within the vocabulary.

#include <stdexcept>

#include "data/text/sample_file.hpp"
#include "tests/data/text/small_samples.hpp"
#include "tests/fuzz/hdf5_forgery.hpp"
#include "tests/fuzz/inputs.hpp"
#include "tests/support/hdf5_leaks.hpp"

namespace {

const mylos::tests::ForgeryNames names = {
    {"/ids", "/starts", "/documents", "/lines", "/supervised"},
    {"format", "format_version", "max_length", "truncate", "begin", "end", "vocabulary_size", "tokenizer_pieces",
     "tokenizer_crc32c", "documents", "empty_documents", "long_documents", "tokens_left_out", "short_samples",
     "unsupervised_samples", "loss_on", "crc32c"}};

void check(const mylos::data::PreparedSamples& prepared) {
  using mylos::tests::expect;
  const auto& set = prepared.set;
  std::size_t tokens = 0;
  for (std::size_t i = 0; i < set.size(); ++i) {
    for (const auto id : set.sample(i)) {
      expect(id >= 0 && static_cast<std::size_t>(id) < prepared.options.vocabulary_size, "an id is of the vocabulary");
      ++tokens;
    }
    expect(set.documents[i] < set.counts.documents, "a sample is of a document");
    expect(set.predicted(i) > 0, "a sample has a supervised token");
  }
  expect(tokens == set.ids.size(), "the samples hold all ids");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const mylos::tests::InputDirectory directory;  // HDF5 cannot open a file in memory by its path
  static const std::filesystem::path file = directory.path() / "samples.h5";
  const auto written = [](bool has_marks) {
    auto samples = mylos::tests::small_samples();
    if (has_marks) samples.set.supervised = {0, 1, 1, 0, 0, 1, 0, 0, 1, 1, 1, 1};
    mylos::data::write_sample_file(file, samples);
    return directory.get(file.filename());
  };
  // written once, because our writer waits for the disk
  static const std::string whole = written(false), marked = written(true);
  directory.put(file.filename(), size % 2 == 0 ? whole : marked);
  mylos::tests::forge_hdf5(file, names, {bytes, size});
  try {
    auto prepared = mylos::data::read_sample_file(file);
    check(prepared);
    mylos::data::limit_documents(prepared.set, 2);
    check(prepared);
    check_prepared_for(prepared, file, prepared.tokenizer, prepared.options);
  } catch (const std::runtime_error&) {  // how bad input is rejected
  }
  return 0;
}
