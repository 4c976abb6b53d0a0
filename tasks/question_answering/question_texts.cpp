#include "tasks/question_answering/question_texts.hpp"

#include "core/base/python_text.hpp"
#include "data/squad/squad.hpp"

namespace mylos::tasks {

std::vector<std::string> question_texts(const std::filesystem::path& file) {
  const data::SquadDataset dataset = data::read_squad(file);
  std::vector<std::string> texts = dataset.contexts;
  for (const data::SquadQuestion& question : dataset.questions) {
    texts.emplace_back(python_lstrip(question.question));
  }
  return texts;
}

}  // namespace mylos::tasks
