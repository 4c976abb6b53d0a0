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
            "answers questions about a text; without a question it reads them, one a line", 0, any_number, false,
            "question-answering"},
    Command{"generate", generate_command, "--model M [options] [PROMPT...]",
            "continues texts with a language model; without a prompt it reads them, one a line", 0, any_number, false,
            "language-modeling"},
    Command{"classify", classify_command, "--model M [options] IMAGE...",
            "prints the five likeliest labels of pictures, with their probabilities", 1, any_number, false,
            "image-classification"},
    Command{"score", score_command, "DATA PREDICTIONS [options]",
            "prints what the data set's official script prints for these predictions", 2, 2, false,
            "question-answering"},
    Command{"tokenize", tokenize_command, "--model M | --vocab FILE [options]",
            "reads lines and prints each one's token ids as a JSON array, or turns ids into text", 0, 0},
    Command{"prepare", prepare_command, "--model M --data FILE --output FILE [options]",
            "tokenises once: .h5 is read by train and eval, .jsonl by people", 0, 0},
    Command{"fetch", 0, "NAME", data::fetch_summary(), 1, 1},
    Command{"info", info_command, "[options]", "says what this build is and what it runs on", 0, 0, true},
    Command{"bench", bench_command, "gemm|step|batch|tokenize|collectives [options]",
            "validates, then times matrix products, training, micro-batches, the tokenizer or exchanges between "
            "ranks",
            1, 1, true},
    Command{"checkpoint", checkpoint_command, "list|show|verify|export|diff PATH [PATH] [options]",
            "looks into checkpoints; PATH is one or a run's directory; diff exits with 1 where two differ", 2, 3},
    Command{"compare", compare_command | train_command, "--model M --train FILE [--dev FILE] --output DIR [options]",
            "trains one job in several modes on several numbers of ranks, and prints one table", 0, 0},
    Command{"plan", plan_command, "--model M --gpu KIND [--gpus N] [--nodes M] [options]",
            "says for each mode what fits, how long it takes and how it scales, and which line to run", 0, 0},
    Command{"watch", watch_command, "RUN [options]",
            "shows a live run from anywhere that sees its files, until it is finished", 1, 1},
    Command{"doctor", doctor_command, "[--output DIR] [--model M] [options]",
            "says what would go wrong here: alone, or started on all ranks of a job; exit code 1 with an error", 0, 0,
            true},
    Command{"report", report_command, "[RUN...] [options]", "writes runs as one HTML page that needs nothing else", 0,
            any_number},
};

}  // namespace

std::span<const Command> commands() { return table; }

const Command* find_command(std::string_view name) {
  const auto found = std::ranges::find(table, name, &Command::name);
  return found == table.end() ? nullptr : found;
}

}  // namespace mylos::app
