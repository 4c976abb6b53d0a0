#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// SQuAD files: the nested form of v1.1 and v2.0, and the flat form of Hugging Face as one object or as JSON lines.
namespace mylos::data {

enum class SquadVersion { v1_1, v2_0 };

struct SquadAnswer {
  std::string text;
  std::size_t start = 0;  ///< code points of the context before it
  bool aligned = true;    ///< the context has `text`, which is not empty, at `start`
};

struct SquadQuestion {
  std::string id;
  std::size_t context = 0;  ///< index into SquadDataset::contexts
  std::string question;
  std::vector<SquadAnswer> answers;
  bool has_answers_key = false;  ///< without one, a question can be predicted but not trained on or scored
  bool impossible = false;
};

struct SquadDataset {
  SquadVersion version = SquadVersion::v1_1;
  std::vector<std::string> contexts;  ///< distinct texts
  std::vector<SquadQuestion> questions;
};

/// Answers whose offset does not match their text.
struct MisplacedAnswers {
  std::size_t count = 0;
  std::string first;  ///< one line on the first of them, naming the question
};

/// Reads a SQuAD file. Its version is 2.0 if `version` says so, or any question is_impossible or has an empty list of
/// answers, else 1.1. Throws one line naming file and place on missing keys, wrong types and duplicate ids.
SquadDataset read_squad(const std::filesystem::path& path);

/// The same from text; `name` is the file in errors.
SquadDataset parse_squad(std::string_view text, std::string_view name);

/// The version that "1.1" or "2.0" names; throws on anything else.
SquadVersion parse_squad_version(std::string_view text);

/// Which answers are not aligned; they take no part in training.
MisplacedAnswers find_misplaced_answers(const SquadDataset& dataset);

/// Keeps the first `count` questions.
void limit_questions(SquadDataset& dataset, std::size_t count);

}  // namespace mylos::data
