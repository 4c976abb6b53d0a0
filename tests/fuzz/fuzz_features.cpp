// A valid feature file with forged contents: whatever is read refers only to existing data.

#include <algorithm>
#include <stdexcept>

#include "data/squad/feature_file.hpp"
#include "tests/data/squad/prepared.hpp"
#include "tests/fuzz/hdf5_forgery.hpp"
#include "tests/fuzz/inputs.hpp"
#include "tests/support/hdf5_leaks.hpp"

namespace {

const mylos::tests::ForgeryNames names = {
    {"/contexts",
     "/contexts/bytes",
     "/contexts/starts",
     "/questions",
     "/questions/ids",
     "/questions/ids/bytes",
     "/questions/ids/starts",
     "/questions/texts/bytes",
     "/questions/texts/starts",
     "/questions/first_answer",
     "/questions/context",
     "/questions/flags",
     "/answers",
     "/answers/texts/bytes",
     "/answers/texts/starts",
     "/answers/start",
     "/answers/aligned",
     "/tokens/questions/ids",
     "/tokens/questions/begin",
     "/tokens/questions/end",
     "/tokens/questions/starts",
     "/tokens/contexts/ids",
     "/tokens/contexts/begin",
     "/tokens/contexts/end",
     "/tokens/contexts/starts",
     "/windows",
     "/windows/question",
     "/windows/window",
     "/windows/context_begin",
     "/windows/context_count",
     "/windows/start",
     "/windows/end"},
    {"format", "format_version", "squad_version", "max_length", "doc_stride", "exact_labels", "sep_labels", "classify",
     "separator", "separators", "second_type", "vocabulary_size", "vocabulary_crc32c", "do_lower_case", "strip_accents",
     "crc32c"}};

void check(const mylos::data::PreparedFeatures& prepared) {
  using mylos::tests::expect;
  const auto& set = prepared.features;
  expect(set.context_of_question.size() == prepared.dataset.questions.size(), "each question has a context");
  for (const auto& row : set.features) {
    expect(row.question < set.questions.size(), "a window's question exists");
    const auto context = set.contexts.count(set.context_of_question[row.question]);
    expect(row.context_begin + std::size_t{row.context_count} <= context, "a window lies in its context");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const mylos::tests::InputDirectory directory;  // HDF5 cannot open a file in memory by its path
  static const std::filesystem::path file = directory.path() / "features.h5";
  static const std::string whole = [] {  // written once, because our writer waits for the disk
    mylos::data::write_feature_file(file, mylos::data::small_prepared());
    return directory.get(file.filename());
  }();
  directory.put(file.filename(), whole);
  mylos::tests::forge_hdf5(file, names, {bytes, size});
  try {
    const auto prepared = mylos::data::read_feature_file(file);
    check(prepared);
    mylos::data::select_features(prepared.dataset, prepared.features, prepared.options);
  } catch (const std::runtime_error&) {  // how bad input is rejected
  }
  return 0;
}
