#include "app/options/commands.hpp"

#include "data/huggingface/fetch.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace mylos::app {
namespace {

constexpr std::size_t any_number = std::numeric_limits<std::size_t>::max();

constexpr std::array table = {
    Command{"train", train_command, "--model M --train FILE [--dev FILE] --output DIR [options]", "fine-tunes a model",
            0, 0, true},
    Command{"eval", eval_command, "--model M --data FILE --output DIR [options]",
            "predicts the samples of a file and scores the predictions", 0, 0},
    Command{"ask", ask_command, "--model M --context FILE [options] [QUESTION...]",
            "answers questions about a text; reads them from standard input, one per line, if none is given", 0,
            any_number, false, "question-answering"},
    Command{"generate", generate_command, "--model M [options] [PROMPT...]",
            "continues prompts with a language model; reads them from standard input, one per line, if none is given",
            0, any_number, false, "language-modeling"},
    Command{"classify", classify_command, "--model M [options] IMAGE...",
            "prints the five likeliest labels of each image, with their probabilities", 1, any_number, false,
            "image-classification"},
    Command{"score", score_command, "DATA PREDICTIONS [options]",
            "scores predictions as the data set's official script does", 2, 2, false, "question-answering"},
    Command{"tokenize", tokenize_command, "--model M | --vocab FILE [options]",
            "reads lines and prints the token ids of each as a JSON array, or converts ids to text", 0, 0},
    Command{"prepare", prepare_command, "--model M --data FILE --output FILE [options]",
            "tokenises a data set once: .h5 for train and eval, .jsonl for people", 0, 0},
    Command{"fetch", 0, "NAME", data::fetch_summary(), 1, 1},
    Command{"info", info_command, "[options]", "prints the settings of this build and the hardware that it runs on", 0,
            0, true},
    Command{"bench", bench_command, "gemm|step|batch|tokenize|collectives [options]",
            "validates, then times matrix products, training steps, micro-batches, the tokenizer or collectives", 1, 1,
            true},
    Command{
        "checkpoint", checkpoint_command, "list|show|verify|export|diff PATH [PATH] [options]",
        "inspects or exports checkpoints; PATH is a checkpoint or a run's directory; diff exits with 1 if two differ",
        2, 3},
    Command{"compare", compare_command | train_command, "--model M --train FILE [--dev FILE] --output DIR [options]",
            "repeats a training run with several sharding strategies and numbers of ranks, and prints a table", 0, 0},
    Command{"plan", plan_command, "--model M --gpu KIND [--gpus N] [--nodes M] [options]",
            "predicts memory, time and scaling of each sharding strategy, and prints the command to run", 0, 0},
    Command{"watch", watch_command, "RUN [options]",
            "shows a live run until it ends, on any machine that sees its files", 1, 1},
    Command{
        "doctor", doctor_command, "[--output DIR] [--model M] [options]",
        "checks this machine, or all ranks of a job, for what would make a run fail; exits with 1 if it finds errors",
        0, 0, true},
    Command{"report", report_command, "[RUN...] [options]", "writes a self-contained HTML page about runs", 0,
            any_number},
};

}  // namespace

std::span<const Command> commands() { return table; }

const Command* find_command(std::string_view name) {
  const auto found = std::ranges::find(table, name, &Command::name);
  return found == table.end() ? nullptr : found;
}

}  // namespace mylos::app
