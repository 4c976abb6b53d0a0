#include "core/base/error.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/base/text/unicode.hpp"
#include "tasks/language_modeling/generator.hpp"
#include "tasks/language_modeling/language_modeling_kind.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

/// mylos generate: continues texts.
namespace mylos::tasks {
namespace {

/// Prints the texts of concurrently generated prompts one after the other: the first unfinished text token by token.
class TextsInOrder {
 public:
  explicit TextsInOrder(std::size_t count) : texts_(count) {}

  void take(std::size_t index, std::string_view more, bool is_done) {
    texts_[index].waiting += more;
    texts_[index].is_done = is_done;
    while (first_ < texts_.size()) {
      Text& text = texts_[first_];
      print(std::exchange(text.waiting, {}));
      if (!text.is_done) break;
      print("\n");
      ++first_;
    }
    flush_output();
  }

 private:
  struct Text {
    std::string waiting;  ///< not printed yet
    bool is_done = false;
  };
  std::vector<Text> texts_;
  std::size_t first_ = 0;  ///< index of the first unfinished text
};

std::string continuation_json(const std::string& prompt, const Continuation& continuation) {
  const nlohmann::ordered_json object = {{"prompt", prompt},
                                         {"ids", continuation.ids},
                                         {"text", continuation.text},
                                         {"log_probabilities", continuation.log_probabilities},
                                         {"stop", continuation.stop}};
  return object.dump() + "\n";
}

void continue_prompts(Generator& generator, std::span<const Prompt> prompts, bool json) {
  if (!json) {
    TextsInOrder texts(prompts.size());
    generator.generate(
        prompts, [&](std::size_t index, std::string_view more, bool is_done) { texts.take(index, more, is_done); });
    return;
  }
  const std::vector<Continuation> continuations = generator.generate(prompts);
  for (std::size_t i = 0; i < prompts.size(); ++i)
    print_json_text(continuation_json(prompts[i].text, continuations[i]));
  flush_output();
}

/// Reads prompts that are typed or piped in, one per line, and continues `batch` of them together. Prompts before an
/// invalid line are still continued.
void continue_lines(const Generator& generator, std::size_t batch,
                    const std::function<void(std::span<const Prompt>)>& answer) {
  const bool asks = ::isatty(STDIN_FILENO) == 1;
  std::vector<Prompt> group;
  const auto answer_group = [&] {
    answer(group);
    group.clear();
  };
  std::string line;
  for (std::size_t number = 0;; ++number) {
    if (asks) std::cerr << "prompt> " << std::flush;
    if (!std::getline(std::cin, line)) break;
    if (line.ends_with('\r')) line.pop_back();
    try {
      ensure_utf8(line, fmt::format("standard input, line {}", number + 1));
      group.push_back(generator.read_prompt(line, number));
    } catch (const std::exception&) {
      answer_group();
      throw;
    }
    if (group.size() == batch) answer_group();
  }
  answer_group();
  ensure(!std::cin.bad(), "cannot read standard input");
}

}  // namespace

void generate(const CommandCall& call) {
  for (std::size_t i = 0; i < call.words.size(); ++i) ensure_utf8(call.words[i], fmt::format("prompt {}", i + 1));
  const RunConfig& run = call.start();
  Generator generator(run, log_line, call.chat);
  const std::size_t batch = run.task.batch;
  const auto answer = [&](std::span<const Prompt> prompts) {
    if (!prompts.empty()) continue_prompts(generator, prompts, call.json);
  };
  if (call.words.empty()) return continue_lines(generator, batch, answer);
  std::vector<Prompt> prompts;
  for (const std::string& text : call.words) prompts.push_back(generator.read_prompt(text, prompts.size()));
  for (std::size_t begin = 0; begin < prompts.size(); begin += batch) {
    answer(std::span(prompts).subspan(begin, std::min(batch, prompts.size() - begin)));
  }
}

}  // namespace mylos::tasks
