#include "tasks/question_answering/question_texts.hpp"

#include "core/base/python_text.hpp"
#include "data/squad/squad.hpp"
#include "families/bert/bert_config.hpp"
#include "families/bert/wordpiece_files.hpp"

namespace mylos::tasks {

std::vector<std::string> tokenized_texts(const std::filesystem::path& file) {
  const data::SquadDataset dataset = data::read_squad(file);
  std::vector<std::string> texts = dataset.contexts;
  for (const data::SquadQuestion& question : dataset.questions) {
    texts.emplace_back(python_lstrip(question.question));
  }
  return texts;
}

WordPieceSource wordpiece_source(const std::filesystem::path& directory) {
  families::read_bert_config(directory / "config.json");  // checks the family: only BERT models use WordPiece
  return {families::vocabulary_path(directory), families::read_tokenizer_options(directory)};
}

}  // namespace mylos::tasks
