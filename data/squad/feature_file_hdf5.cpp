// The arrays of a feature file. Texts are stored as concatenated bytes with the offset of each text.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/hdf5_file.hpp"
#include "data/squad/feature_file.hpp"
#include "data/tokenizer/vocabulary.hpp"

namespace mylos::data {
namespace {

constexpr const char* format_name = "mylos features";
constexpr std::int64_t format_version = 2;  // files of version 1 are read too

enum QuestionFlag : std::uint8_t { has_answers_flag = 1, impossible_flag = 2 };

template <class Element>
using Array = std::vector<Element>;

/// Texts in their stored form.
struct StoredTexts {
  Array<std::uint8_t> bytes;
  Array<std::uint64_t> starts = {0};

  void add(const std::string& text) {
    bytes.insert(bytes.end(), text.begin(), text.end());
    starts.push_back(bytes.size());
  }
  void write(Hdf5Writer& file, const std::string& group) const {
    file.write<std::uint8_t>((group + "/bytes").c_str(), bytes);
    file.write<std::uint64_t>((group + "/starts").c_str(), starts);
  }
};

template <class Element, class Rows, class Field>
void write_column(Hdf5Writer& file, const std::string& array, const Rows& rows, Field field) {
  Array<Element> values;
  values.reserve(rows.size());
  for (const auto& row : rows) values.push_back(static_cast<Element>(field(row)));
  file.write<Element>(array.c_str(), values);
}

void write_dataset(Hdf5Writer& file, const SquadDataset& dataset) {
  StoredTexts contexts;
  for (const auto& context : dataset.contexts) contexts.add(context);
  contexts.write(file, "/contexts");
  StoredTexts ids, texts, answers;
  Array<std::uint64_t> first_answers{0}, answer_starts;
  Array<std::uint8_t> aligned;
  for (const auto& question : dataset.questions) {
    ids.add(question.id);
    texts.add(question.question);
    for (const auto& answer : question.answers) {
      answers.add(answer.text);
      answer_starts.push_back(answer.start);
      aligned.push_back(answer.aligned ? 1 : 0);
    }
    first_answers.push_back(answer_starts.size());
  }
  ids.write(file, "/questions/ids");
  texts.write(file, "/questions/texts");
  answers.write(file, "/answers/texts");
  file.write<std::uint64_t>("/answers/start", answer_starts);
  file.write<std::uint8_t>("/answers/aligned", aligned);
  file.write<std::uint64_t>("/questions/first_answer", first_answers);
  write_column<std::uint64_t>(file, "/questions/context", dataset.questions, [](const auto& q) { return q.context; });
  write_column<std::uint8_t>(file, "/questions/flags", dataset.questions, [](const auto& question) {
    return (question.has_answers_key ? has_answers_flag : 0) | (question.impossible ? impossible_flag : 0);
  });
}

void write_tokens(Hdf5Writer& file, const std::string& group, const TokenizedTexts& texts) {
  file.write<std::int32_t>((group + "/ids").c_str(), texts.tokens.ids);
  write_column<std::uint32_t>(file, group + "/begin", texts.tokens.offsets,
                              [](const auto& range) { return range.begin; });
  write_column<std::uint32_t>(file, group + "/end", texts.tokens.offsets, [](const auto& range) { return range.end; });
  write_column<std::uint64_t>(file, group + "/starts", texts.starts, [](const auto start) { return start; });
}

void write_windows(Hdf5Writer& file, std::span<const Feature> rows) {
  write_column<std::uint32_t>(file, "/windows/question", rows, [](const auto& row) { return row.question; });
  write_column<std::uint32_t>(file, "/windows/window", rows, [](const auto& row) { return row.window; });
  write_column<std::uint32_t>(file, "/windows/context_begin", rows, [](const auto& row) { return row.context_begin; });
  write_column<std::uint32_t>(file, "/windows/context_count", rows, [](const auto& row) { return row.context_count; });
  write_column<std::int32_t>(file, "/windows/start", rows, [](const auto& row) { return row.start; });
  write_column<std::int32_t>(file, "/windows/end", rows, [](const auto& row) { return row.end; });
}

void write_attributes(Hdf5Writer& file, const PreparedFeatures& prepared) {
  const auto& [dataset, features, options, tokenizer] = prepared;
  file.set_attribute("format", format_name);
  file.set_attribute("format_version", format_version);
  file.set_attribute("squad_version", dataset.version == SquadVersion::v2_0 ? 2 : 1);
  file.set_attribute("max_length", static_cast<std::int64_t>(options.max_length));
  file.set_attribute("doc_stride", static_cast<std::int64_t>(options.doc_stride));
  file.set_attribute("exact_labels", options.exact_labels ? 1 : 0);
  file.set_attribute("truncate", options.truncate ? 1 : 0);
  file.set_attribute("sep_labels", static_cast<std::int64_t>(features.sep_labels));
  file.set_attribute("classify", features.layout.first);
  file.set_attribute("separator", features.layout.separator);
  file.set_attribute("separators", static_cast<std::int64_t>(features.layout.separators));
  file.set_attribute("second_type", features.layout.second_type);
  file.set_attribute("tokenizer_size", static_cast<std::int64_t>(tokenizer.size));
  file.set_attribute("tokenizer_crc32c", tokenizer.checksum);
}

/// Reads the arrays of one file and checks that they are consistent. A checksum does not show who wrote the file.
class FeatureReader {
 public:
  explicit FeatureReader(const std::filesystem::path& path) : name_(path.string()), file_(path) {}

  PreparedFeatures read() {
    file_.check_format(format_name, format_version, 1);
    PreparedFeatures prepared;
    read_attributes(prepared);
    read_dataset(prepared.dataset);
    prepared.features.questions = read_tokens("/tokens/questions", prepared.tokenizer.size);
    prepared.features.contexts = read_tokens("/tokens/contexts", prepared.tokenizer.size);
    check(prepared.features.questions.size() == prepared.dataset.questions.size(), "not every question has its tokens");
    check(prepared.features.contexts.size() == prepared.dataset.contexts.size(), "not every context has its tokens");
    for (const auto& question : prepared.dataset.questions) {
      prepared.features.context_of_question.values().push_back(static_cast<std::uint32_t>(question.context));
    }
    read_windows(prepared.features, prepared.options.max_length);
    check_window_order(prepared.features, name_);
    return prepared;
  }

 private:
  void check(bool condition, std::string_view problem) const {
    if (!condition) fail(fmt::format("{}: {}", name_, problem));
  }

  /// Reads a nonnegative integer attribute.
  std::size_t count(const char* attribute) const {
    const auto value = file_.integer(attribute);
    if (value < 0) fail(fmt::format("{}: {} = {} is negative", name_, attribute, value));
    return static_cast<std::size_t>(value);
  }

  void read_attributes(PreparedFeatures& prepared) const {
    const auto squad_version = count("squad_version");
    check(squad_version == 1 || squad_version == 2, "squad_version is neither 1 nor 2");
    prepared.dataset.version = squad_version == 2 ? SquadVersion::v2_0 : SquadVersion::v1_1;
    prepared.options = {.max_length = count("max_length"),
                        .doc_stride = count("doc_stride"),
                        .exact_labels = count("exact_labels") != 0,
                        .training = false,
                        .truncate = file_.has_attribute("truncate") && count("truncate") != 0};
    prepared.tokenizer = read_tokenizer();
    prepared.features.sep_labels = count("sep_labels");
    PairLayout& layout = prepared.features.layout;
    layout.first = special_token("classify", prepared.tokenizer.size);
    layout.separator = special_token("separator", prepared.tokenizer.size);
    if (!file_.has_attribute("separators")) return;  // of a file from before the layout was written
    layout.separators = count("separators");
    check(layout.separators == 1 || layout.separators == 2, "separators is neither 1 nor 2");
    layout.second_type = static_cast<std::int32_t>(count("second_type"));
    check(layout.second_type <= 1, "second_type is neither 0 nor 1");
  }

  TokenizerIdentity read_tokenizer() const {
    const auto checksum = [&](const char* name) { return static_cast<std::uint32_t>(count(name)); };
    if (file_.integer("format_version") != 1) return {count("tokenizer_size"), checksum("tokenizer_crc32c")};
    // Version 1 has the checksum of the vocabulary, and each setting.
    TokenizerOptions options{.do_lower_case = count("do_lower_case") != 0,
                             .strip_accents = {},
                             .tokenize_chinese_chars = count("tokenize_chinese_chars") != 0};
    if (file_.has_attribute("strip_accents")) options.strip_accents = count("strip_accents") != 0;
    return {count("vocabulary_size"), wordpiece_checksum(checksum("vocabulary_crc32c"), options)};
  }

  TokenId special_token(const char* attribute, std::size_t vocabulary_size) const {
    const auto id = count(attribute);
    check(id < vocabulary_size, "a special token is not of the vocabulary");
    return static_cast<TokenId>(id);
  }

  /// Reads offsets, which begin at 0, never decrease, and end at `size`.
  std::vector<std::size_t> read_starts(const std::string& array, std::size_t size) {
    const auto stored = file_.read<std::uint64_t>(array.c_str());
    const bool fits = !stored.empty() && stored.front() == 0 && std::ranges::is_sorted(stored) && stored.back() == size;
    if (!fits) fail(fmt::format("{}: {} does not divide {} elements", name_, array, size));
    return {stored.begin(), stored.end()};
  }

  std::vector<std::string> read_texts(const std::string& group) {
    const auto bytes = file_.read<std::uint8_t>((group + "/bytes").c_str());
    const auto starts = read_starts(group + "/starts", bytes.size());
    std::vector<std::string> texts;
    for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
      texts.emplace_back(bytes.begin() + static_cast<std::ptrdiff_t>(starts[i]),
                         bytes.begin() + static_cast<std::ptrdiff_t>(starts[i + 1]));
      ensure_utf8(texts.back(), fmt::format("{}: {}", name_, group));
    }
    return texts;
  }

  std::vector<SquadAnswer> read_answers() {
    auto texts = read_texts("/answers/texts");
    const auto starts = file_.read<std::uint64_t>("/answers/start");
    const auto aligned = file_.read<std::uint8_t>("/answers/aligned");
    check(texts.size() == starts.size() && texts.size() == aligned.size(), "the arrays of /answers differ in length");
    std::vector<SquadAnswer> answers;
    for (std::size_t i = 0; i < texts.size(); ++i) answers.push_back({std::move(texts[i]), starts[i], aligned[i] != 0});
    return answers;
  }

  void read_dataset(SquadDataset& dataset) {
    dataset.contexts = read_texts("/contexts");
    auto answers = read_answers();
    auto ids = read_texts("/questions/ids");
    auto texts = read_texts("/questions/texts");
    const auto contexts = file_.read<std::uint64_t>("/questions/context");
    const auto flags = file_.read<std::uint8_t>("/questions/flags");
    const auto first_answers = read_starts("/questions/first_answer", answers.size());
    const auto size = ids.size();
    check(texts.size() == size && contexts.size() == size && flags.size() == size && first_answers.size() == size + 1,
          "the arrays of /questions differ in length");
    for (std::size_t i = 0; i < size; ++i) {
      check(contexts[i] < dataset.contexts.size(), "a question has a context that is not there");
      auto& question = dataset.questions.emplace_back();
      question.id = std::move(ids[i]);
      question.context = contexts[i];
      question.question = std::move(texts[i]);
      question.has_answers_key = (flags[i] & has_answers_flag) != 0;
      question.impossible = (flags[i] & impossible_flag) != 0;
      for (auto a = first_answers[i]; a < first_answers[i + 1]; ++a) question.answers.push_back(std::move(answers[a]));
    }
  }

  TokenizedTexts read_tokens(const std::string& group, std::size_t vocabulary_size) {
    TokenizedTexts texts;
    texts.tokens.ids = file_.read<std::int32_t>((group + "/ids").c_str());
    const auto begins = file_.read<std::uint32_t>((group + "/begin").c_str());
    const auto ends = file_.read<std::uint32_t>((group + "/end").c_str());
    const auto size = texts.tokens.ids.size();
    Array<CodePointRange> offsets;
    check(begins.size() == size && ends.size() == size, "the arrays of " + group + " differ in length");
    for (std::size_t i = 0; i < size; ++i) {
      const auto id = texts.tokens.ids[i];
      check(id >= 0 && static_cast<std::size_t>(id) < vocabulary_size, "a token is not of the vocabulary");
      check(begins[i] <= ends[i], "a token ends before it begins");
      offsets.push_back({begins[i], ends[i]});
    }
    texts.tokens.offsets = std::move(offsets);
    texts.starts = read_starts(group + "/starts", size);
    return texts;
  }

  void read_windows(FeatureSet& set, std::size_t max_length) {
    const auto questions = file_.read<std::uint32_t>("/windows/question");
    const auto windows = file_.read<std::uint32_t>("/windows/window");
    const auto begins = file_.read<std::uint32_t>("/windows/context_begin");
    const auto counts = file_.read<std::uint32_t>("/windows/context_count");
    const auto starts = file_.read<std::int32_t>("/windows/start");
    const auto ends = file_.read<std::int32_t>("/windows/end");
    for (const auto size : {windows.size(), begins.size(), counts.size(), starts.size(), ends.size()}) {
      check(size == questions.size(), "the arrays of /windows differ in length");
    }
    for (std::size_t i = 0; i < questions.size(); ++i) {
      const Feature row{questions[i], windows[i], begins[i], counts[i], starts[i], ends[i]};
      check(is_possible(set, row, max_length), fmt::format("window {} does not fit its question and context", i));
      set.features.values().push_back(row);
    }
  }

  static bool is_possible(const FeatureSet& set, const Feature& row, std::size_t max_length) {
    if (row.question >= set.questions.size()) return false;
    const auto context = set.contexts.count(set.context_of_question[row.question]);
    if (row.context_begin > context || row.context_count > context - row.context_begin) return false;
    const auto length = static_cast<std::int64_t>(set.length(row));
    return set.length(row) <= max_length && row.start >= -1 && row.start < length && row.end >= -1 && row.end < length;
  }

  std::string name_;
  Hdf5Reader file_;
};

}  // namespace

void write_feature_file(const std::filesystem::path& path, const PreparedFeatures& prepared) {
  Hdf5Writer file(path.string());
  write_attributes(file, prepared);
  write_dataset(file, prepared.dataset);
  write_tokens(file, "/tokens/questions", prepared.features.questions);
  write_tokens(file, "/tokens/contexts", prepared.features.contexts);
  write_windows(file, prepared.features.features);
  write_text(path, file.finish());
}

bool is_feature_file(const std::filesystem::path& path) { return is_prepared_file(path, format_name); }

PreparedFeatures read_feature_file(const std::filesystem::path& path) { return FeatureReader(path).read(); }

}  // namespace mylos::data
