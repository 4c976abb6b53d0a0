#include "data/squad/squad.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/hdf5_file.hpp"
#include "core/base/files/json.hpp"
#include "core/base/files/text_file.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/text/unicode.hpp"

namespace mylos::data {
namespace {

/// The start of an answer that the file locates before the context.
constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

bool is_aligned(const SquadAnswer& answer, std::string_view context) {
  if (answer.text.empty() || answer.start >= context.size()) return false;  // at most one code point per byte
  const auto begin = static_cast<unsigned>(answer.start);
  const auto length = static_cast<unsigned>(count_code_points(answer.text));
  return slice_code_points(context, {begin, begin + length}) == answer.text;
}

class SquadReader {
 public:
  /// Adds the top-level object of a file: nested, or flat rows under `data`.
  void add_document(const Json& document, const JsonLocation& location) {
    if (const Json* version = find_member(document, "version", location)) {
      says_v2_ = says_v2_ || is_version_2(*version, JsonLocation(location, "version"));
    }
    const Json* data = find_member(document, "data", location);
    if (data == nullptr) return add_row(document, location);  // a single flat row is also a document
    const JsonLocation data_location(location, "data");
    for (std::size_t i = 0; i < as_list(*data, data_location).size(); ++i) {
      const JsonLocation row_location(data_location, i);
      const Json& row = (*data)[i];
      find_member(row, "paragraphs", row_location) != nullptr ? add_article(row, row_location)
                                                              : add_row(row, row_location);
    }
  }

  /// Adds a flat row: {"id", "context", "question", "answers": {"text": [...], "answer_start": [...]}}.
  void add_row(const Json& row, const JsonLocation& location) {
    if (find_member(row, "input_ids", location) != nullptr) {
      location.fail(
          fmt::format("a window that `mylos prepare` wrote for people; {} writes a file to train and "
                      "evaluate on",
                      prepare_command()));
    }
    if (find_member(row, "context", location) == nullptr) {
      location.fail("not in SQuAD format: expected 'data' with 'paragraphs', or rows with 'context' and 'question'");
    }
    add_question(row, add_context(string_member(row, "context", location)), location);
  }

  SquadDataset finish(std::string_view name) {
    if (dataset_.questions.empty()) fail(fmt::format("{}: has no questions", name));
    check_ids(name);
    const bool is_v2 = says_v2_ || std::any_of(dataset_.questions.begin(), dataset_.questions.end(), [](const auto& q) {
                         return q.impossible || (q.has_answers_key && q.answers.empty());
                       });
    dataset_.version = is_v2 ? SquadVersion::v2_0 : SquadVersion::v1_1;
    return std::move(dataset_);
  }

 private:
  static bool is_version_2(const Json& version, const JsonLocation& location) {
    if (version.is_number()) return version.get<double>() >= 2;
    const std::string& text = as_string(version, location);
    return text.starts_with("v2") || text.starts_with('2');
  }

  void add_article(const Json& article, const JsonLocation& location) {
    const Json& paragraphs = list_member(article, "paragraphs", location);
    const JsonLocation list_location(location, "paragraphs");
    for (std::size_t i = 0; i < paragraphs.size(); ++i) add_paragraph(paragraphs[i], JsonLocation(list_location, i));
  }

  void add_paragraph(const Json& paragraph, const JsonLocation& location) {
    const std::size_t context = add_context(string_member(paragraph, "context", location));
    const Json& questions = list_member(paragraph, "qas", location);
    const JsonLocation list_location(location, "qas");
    for (std::size_t i = 0; i < questions.size(); ++i)
      add_question(questions[i], context, JsonLocation(list_location, i));
  }

  std::size_t add_context(const std::string& text) {
    const auto [known, is_new] = contexts_.emplace(text, dataset_.contexts.size());
    if (is_new) dataset_.contexts.push_back(text);
    return known->second;
  }

  void add_question(const Json& row, std::size_t context, const JsonLocation& location) {
    SquadQuestion question;
    question.id = as_id(member(row, "id", location), JsonLocation(location, "id"));
    question.context = context;
    question.question = string_member(row, "question", location);
    if (const Json* impossible = find_member(row, "is_impossible", location)) {
      question.impossible = as_bool(*impossible, JsonLocation(location, "is_impossible"));
    }
    if (const Json* answers = find_member(row, "answers", location)) {
      question.has_answers_key = true;
      const JsonLocation answers_location(location, "answers");
      question.answers = answers->is_object() ? read_columns(*answers, answers_location)
                                              : read_answers(as_list(*answers, answers_location), answers_location);
      for (SquadAnswer& answer : question.answers) answer.aligned = is_aligned(answer, dataset_.contexts[context]);
    }
    dataset_.questions.push_back(std::move(question));
  }

  /// Reads the start of an answer. Negative values, which some tools write for answers not found, give `nowhere`.
  static std::size_t read_start(const Json& value, const JsonLocation& location) {
    if (value.is_number_integer() && !value.is_number_unsigned() && value.get<std::int64_t>() < 0) return nowhere;
    return as_count(value, location);
  }

  /// Reads the nested form: [{"text", "answer_start"}, ...].
  static std::vector<SquadAnswer> read_answers(const Json& list, const JsonLocation& location) {
    std::vector<SquadAnswer> answers;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const JsonLocation item(location, i);
      answers.push_back({string_member(list[i], "text", item),
                         read_start(member(list[i], "answer_start", item), JsonLocation(item, "answer_start"))});
    }
    return answers;
  }

  /// Reads the flat form: {"text": [...], "answer_start": [...]}.
  static std::vector<SquadAnswer> read_columns(const Json& columns, const JsonLocation& location) {
    const Json& texts = list_member(columns, "text", location);
    const Json& starts = list_member(columns, "answer_start", location);
    if (texts.size() != starts.size()) {
      location.fail(fmt::format("'text' has {} entries and 'answer_start' {}", texts.size(), starts.size()));
    }
    const JsonLocation text_location(location, "text");
    const JsonLocation start_location(location, "answer_start");
    std::vector<SquadAnswer> answers;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      answers.push_back({as_string(texts[i], JsonLocation(text_location, i)),
                         read_start(starts[i], JsonLocation(start_location, i))});
    }
    return answers;
  }

  void check_ids(std::string_view name) const {
    std::unordered_map<std::string_view, std::size_t> numbers;
    for (std::size_t i = 0; i < dataset_.questions.size(); ++i) {
      const auto [first, is_new] = numbers.emplace(dataset_.questions[i].id, i);
      if (!is_new) {
        fail(fmt::format("{}: id '{}' belongs to question {} and again to question {}; ids must be unique", name,
                         printable(first->first), first->second + 1, i + 1));
      }
    }
  }

  SquadDataset dataset_;
  std::unordered_map<std::string, std::size_t> contexts_;
  bool says_v2_ = false;
};

/// True if `text` has one JSON value per line: its first line is a complete value, and more text follows.
bool is_json_lines(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const std::size_t end = text.find('\n', begin);
  if (begin == std::string_view::npos || end == std::string_view::npos) return false;
  return text.find_first_not_of(" \t\r\n", end) != std::string_view::npos && is_json(text.substr(begin, end - begin));
}

void add_lines(SquadReader& reader, std::string_view text, std::string_view name) {
  const std::vector<std::string_view> lines = split_lines(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find_first_not_of(" \t") == std::string_view::npos) continue;
    const std::string line_name = fmt::format("{}: line {}", name, i + 1);
    reader.add_row(parse_json(lines[i], line_name), JsonLocation(line_name));
  }
}

std::string describe(const SquadDataset& dataset, const SquadQuestion& question, const SquadAnswer& answer) {
  if (answer.start == nowhere) {
    return fmt::format("question {}: answer_start of '{}' is below 0", printable(question.id), printable(answer.text));
  }
  if (answer.text.empty()) return fmt::format("question {}: an answer's text is empty", printable(question.id));
  const auto begin = static_cast<unsigned>(std::min<std::size_t>(answer.start, 0x7FFFFFFF));
  const CodePointRange range{begin, begin + static_cast<unsigned>(count_code_points(answer.text))};
  return fmt::format("question {}: the answer is '{}' but the context has '{}' at answer_start {}",
                     printable(question.id), printable(answer.text),
                     printable(slice_code_points(dataset.contexts[question.context], range)), answer.start);
}

}  // namespace

SquadDataset read_squad(const std::filesystem::path& path) { return parse_squad(read_text_file(path), path.string()); }

SquadDataset parse_squad(std::string_view text, std::string_view name) {
  SquadReader reader;
  if (is_json_lines(text)) {
    add_lines(reader, text, name);
  } else {
    reader.add_document(parse_json(text, name), JsonLocation(name));
  }
  return reader.finish(name);
}

SquadVersion parse_squad_version(std::string_view text) {
  if (text == "1.1") return SquadVersion::v1_1;
  if (text == "2.0") return SquadVersion::v2_0;
  require(false, fmt::format("the SQuAD version is 1.1 or 2.0, not '{}'", printable(text)));
  return SquadVersion::v1_1;
}

MisplacedAnswers find_misplaced_answers(const SquadDataset& dataset) {
  MisplacedAnswers misplaced;
  for (const SquadQuestion& question : dataset.questions) {
    for (const SquadAnswer& answer : question.answers) {
      if (answer.aligned) continue;
      if (misplaced.count++ == 0) misplaced.first = describe(dataset, question, answer);
    }
  }
  return misplaced;
}

std::size_t repair_offsets(SquadDataset& dataset) {
  std::size_t count = 0;
  for (SquadQuestion& question : dataset.questions) {
    for (SquadAnswer& answer : question.answers) {
      if (answer.aligned || answer.start == nowhere) continue;
      for (const int shift : {-1, -2, 1, 2}) {
        SquadAnswer moved = answer;
        moved.start += static_cast<std::size_t>(shift);  // before the first character: beyond the context
        if (!is_aligned(moved, dataset.contexts[question.context])) continue;
        moved.aligned = true;
        answer = std::move(moved);
        ++count;
        break;
      }
    }
  }
  return count;
}

void limit_questions(SquadDataset& dataset, std::size_t count) {
  if (count < dataset.questions.size()) dataset.questions.resize(count);
}

}  // namespace mylos::data
