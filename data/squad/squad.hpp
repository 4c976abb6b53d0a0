#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

/// SQuAD files: the nested form of v1.1 and v2.0, and Hugging Face's flat form as one object or as JSON lines.
namespace mylos::data {

enum class SquadVersion { v1_1, v2_0 };

struct SquadAnswer {
  std::string text;
  std::size_t start = 0;  ///< number of code points before it in the context
  bool aligned = true;    ///< `text` is not empty and is in the context at `start`
};
inline auto members(SquadAnswer& answer) {
  auto& [text, start, aligned] = answer;  // does not compile if one is forgotten
  return std::tie(text, start, aligned);
}

struct SquadQuestion {
  std::string id;
  std::size_t context = 0;  ///< index into SquadDataset::contexts
  std::string question;
  std::vector<SquadAnswer> answers;
  bool has_answers_key = false;  ///< without this key, a question can be predicted but not used for training or scoring
  bool impossible = false;
};
inline auto members(SquadQuestion& entry) {
  auto& [id, context, question, answers, has_answers_key, impossible] = entry;  // does not compile if one is forgotten
  return std::tie(id, context, question, answers, has_answers_key, impossible);
}

struct SquadDataset {
  SquadVersion version = SquadVersion::v1_1;
  std::vector<std::string> contexts;  ///< distinct texts
  std::vector<SquadQuestion> questions;
};
inline auto members(SquadDataset& dataset) {
  auto& [version, contexts, questions] = dataset;  // does not compile if one is forgotten
  return std::tie(version, contexts, questions);
}

/// Answers whose offset does not match their text.
struct MisplacedAnswers {
  std::size_t count = 0;
  std::string first;  ///< one line about the first of them, with the question
};

/// Reads a SQuAD file. The version is 2.0 if `version` says so, if any question is_impossible, or if any list of
/// answers is empty; otherwise it is 1.1. Throws one line with the file and the location on missing keys, wrong types
/// and duplicate ids.
SquadDataset read_squad(const std::filesystem::path& path);

/// Parses a SQuAD file from text. `name` is the file name in errors.
SquadDataset parse_squad(std::string_view text, std::string_view name);

/// Parses "1.1" or "2.0". Throws on anything else.
SquadVersion parse_squad_version(std::string_view text);

/// Finds the answers that are not aligned, which are not used for training.
MisplacedAnswers find_misplaced_answers(const SquadDataset& dataset);

/// Moves answers that are not aligned by one or two characters, to where the context has their text. Returns their
/// number.
std::size_t repair_offsets(SquadDataset& dataset);

/// Keeps the first `count` questions.
void limit_questions(SquadDataset& dataset, std::size_t count);

}  // namespace mylos::data
