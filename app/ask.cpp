#include "app/options/commands.hpp"
#include "app/options/tool_options.hpp"
#include "app/program/compute.hpp"
#include "app/program/model_argument.hpp"
#include "app/report/excerpt.hpp"
#include "app/run_commands.hpp"
#include "core/base/python_text.hpp"
#include "core/base/standard_output.hpp"
#include "core/base/text_file.hpp"
#include "core/base/unicode.hpp"
#include "core/base/usage_error.hpp"
#include "tasks/question_answering/question_answerer.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <iterator>

/// mylos ask: answers questions about a text.
namespace mylos::app {
namespace {

std::string read_context(const std::filesystem::path& path) {
  if (path != "-") return read_text_file(path);
  std::string text((std::istreambuf_iterator<char>(std::cin)), std::istreambuf_iterator<char>());
  ensure_utf8(text, "standard input");
  return text;
}

std::string answer_json(const std::string& question, const data::PipelineAnswer& answer, const std::string& context) {
  const nlohmann::ordered_json object = {
      {"question", question},    {"answer", answer.text},
      {"score", answer.score},   {"start", answer.range.begin},
      {"end", answer.range.end}, {"context", answer.text.empty() ? "" : sentence_around(context, answer.range).text()}};
  return object.dump() + "\n";
}

void print_answer(const std::string& question, const data::PipelineAnswer& answer, const std::string& context,
                  bool highlight) {
  if (answer.text.empty()) {
    print(fmt::format("{}\n  no answer  (score {:.3f})\n", question, answer.score));
    return;
  }
  const Excerpt sentence = sentence_around(context, answer.range);
  print(fmt::format("{}\n  {}  (score {:.3f}, characters {} to {})\n  {}", question, on_one_line(answer.text),
                    answer.score, answer.range.begin, answer.range.end, sentence.before));
  if (highlight) print_escapes("\x1b[1;32m");
  print(sentence.answer);
  if (highlight) print_escapes("\x1b[0m");
  print(sentence.after + "\n");
}

/// Returns whether the output is a terminal and NO_COLOR is unset or empty (https://no-color.org).
bool may_highlight() {
  const char* no_color = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0');
}

/// Returns whether `question` is only white space, of any script.
bool is_blank(std::string_view question) { return python_lstrip(question).empty(); }

/// Calls `answer` with each question that is typed or piped in, one per line. Skips blank lines.
void read_questions(const std::function<void(const std::string&)>& answer) {
  const bool prompts = ::isatty(STDIN_FILENO) == 1;
  std::string line;
  for (std::size_t number = 1;; ++number) {
    if (prompts) std::cerr << "question> " << std::flush;
    if (!std::getline(std::cin, line)) return;
    if (line.ends_with('\r')) line.pop_back();
    ensure_utf8(line, fmt::format("standard input, line {}", number));
    if (is_blank(line)) continue;
    answer(line);
    flush_output();
  }
}

}  // namespace

int run_ask(const Arguments& configured) {
  Arguments arguments = configured;
  const std::vector<std::string>& questions = arguments.positional;
  if (questions.empty() && arguments.ask->context == "-") {
    throw UsageError("ask: --context - and the questions cannot both come from standard input; name a question");
  }
  for (const std::string& question : questions) {
    ensure_utf8(question, "the question");
    if (is_blank(question))
      throw UsageError("ask: a question is blank; type one, or leave it out to enter questions on standard input");
  }
  take_run_settings(*find_command("ask"), arguments);
  resolve_model_argument(arguments);
  const std::string context = read_context(arguments.ask->context);
  const ComputeScope compute;
  check_precision(arguments.run.engine.precision, arguments.run.engine.gemm.tf32);
  tasks::QuestionAnswerer answerer(arguments.run, log_line);
  const bool highlight = may_highlight();
  const auto show = [&](const std::string& question, const data::PipelineAnswer& answer) {
    if (arguments.json) {
      print_json_text(answer_json(question, answer, context));
    } else {
      print_answer(question, answer, context, highlight);
    }
  };
  if (questions.empty()) {
    read_questions([&](const std::string& question) { show(question, answerer.answer(context, {question}).front()); });
  } else {
    const std::vector<data::PipelineAnswer> answers = answerer.answer(context, questions);
    for (std::size_t i = 0; i < questions.size(); ++i) show(questions[i], answers[i]);
  }
  return 0;
}

}  // namespace mylos::app
