#include "tasks/language_modeling/language_modeling_kind.hpp"

#include "core/base/files/files.hpp"
#include "core/base/text/quantities.hpp"
#include "core/base/usage_error.hpp"
#include "data/text/sample_file.hpp"
#include "tasks/interface/text_kind.hpp"
#include "tasks/language_modeling/language_task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

namespace mylos::tasks {
namespace {

/// Cuts the documents of `file` with the tokenizer of `run.task.model`, and writes the samples to `output`: as a sample
/// file if its name ends in .h5, else as one JSON object per line. `notice` gets the counts. Errors: std::runtime_error
/// naming the file.
void prepare_documents(const RunConfig& run, const std::filesystem::path& file, const std::filesystem::path& output,
                       const Notice& notice) {
  const LanguageConfig& config = language_config(run);
  const families::TextModel model =
      families::read_text_model({FileReader(), run.task.model / "config.json"}, language_modeling_head().input);
  const std::unique_ptr<data::Tokenizer> tokenizer = load_tokenizer(FileReader(), run.task.model, notice);
  data::PreparedSamples prepared{
      .set = load_samples(file, tokenizer.get(), model, run.task.model, config, run.task.train_limit, notice),
      .options = sample_options(config, model, tokenizer.get()),
      .tokenizer = {}};
  if (tokenizer) prepared.tokenizer = tokenizer->identity();
  output.extension() == ".h5" ? data::write_sample_file(output, prepared)
                              : data::write_sample_lines(output, prepared.set);
  notice(fmt::format("{}: {}, {}", output.string(), count_of(prepared.set.counts.documents, "document"),
                     count_of(prepared.set.size(), "sample")));
}

constexpr std::array peers = {
    peer_alias("text-column", "text-field"),
    peer_alias("max-seq-length", "max-length"),
    peer_alias("block-size", "max-length"),
    PeerOption{"assistant-only-loss", true, "", "", "use --loss-on assistant, the default for messages, or all"},
    PeerOption{"completion-only-loss", true, "", "",
               "use --loss-on completion, the default for prompt and completion, or all"},
};

// torch.optim.AdamW decays all tensors by 0.01. Only Trainer clips gradients.
constexpr std::array programs = {
    Recipe{"chess-fsdp", "CodeLlama on games of chess with FSDP (chess_finetune.py)",
           "--epochs 1 --batch-size-per-device 1 --gradient-accumulation-steps 8 --learning-rate 1e-5 "
           "--weight-decay 0.01 --decay-all --schedule linear --warmup 0.1 --clip 0 --max-length 512 --long truncate "
           "--precision bfloat16 --mode sharded",
           "parameters and activations are stored in bfloat16 with float master weights, where the program computes "
           "by autocast; it cuts at 512 tokens whatever --max_seq_length says"},
    Recipe{"run_clm", "transformers' run_clm.py",
           "--epochs 3 --batch-per-rank 8 --learning-rate 5e-5 --weight-decay 0 --schedule linear --warmup 0 --clip 1 "
           "--max-length 1024",
           "each document begins a sample, where run_clm joins all documents and cuts them into blocks"},
};

constexpr TaskCommand own_commands[] = {{"generate", generate}};

std::size_t& max_length(RunConfig& run) { return language_config(run).max_length; }

/// Sets samples of --max-length tokens.
void plan_full_samples(PlannedRun& planned) {
  constexpr std::size_t full_samples = 10'000;
  const std::size_t length = max_length(planned.config);
  planned.lengths.assign(std::max(full_samples, planned.config.task.batch), length);
  planned.data = fmt::format("{} samples of {} tokens each", count_text(planned.lengths.size()), length);
  planned.data_options = "--train FILE";
}

std::unique_ptr<TextTask> make_language_task(const FileReader& files, const RunConfig& run, const Notice& notice) {
  return std::make_unique<LanguageTask>(files, run, notice);
}

TaskTraits language_modeling_traits() {
  constexpr std::string_view files = "documents (.jsonl, .pgn, .txt) or samples.h5";
  return {.name = "language-modeling",
          .title = "language modelling",
          .data_texts = {files, files, "documents"},
          .options = language_modeling_options,
          .peer_options = peers,
          .recipes = programs,
          .metrics = {{"loss", {"eval_loss"}}, {"perplexity", {}}, {"accuracy", {"eval_accuracy"}}},
          .commands = own_commands,
          .prepare = prepare_documents,
          .is_prepared = is_prepared_documents,
          .texts = document_texts};
}

class LanguageModelingKind final : public TextKind {
 public:
  LanguageModelingKind()
      : TextKind(language_modeling_traits(), {.head = language_modeling_head(),
                                              .sample = "sample",
                                              .max_length = max_length,
                                              .plan_without_data = plan_full_samples,
                                              .make = make_language_task}) {}

  void set_defaults(RunConfig& run, std::string_view command) const override {
    LanguageConfig config;
    if (command == "generate") {
      run.task.batch = 1;     // answers each typed line before the next one
      config.max_length = 1;  // prompts are not cut, so no length has to fit the model
    }
    run.settings = config;
  }
  void check(const RunConfig& run) const override {
    if (run.task.dropout.value_or(0.0) == 0.0) return;
    throw TaskError(fmt::format("--dropout {}: these models have no dropout; leave it out", *run.task.dropout));
  }
};

}  // namespace

bool is_prepared_documents(const std::filesystem::path& file) {
  if (file.extension() == ".h5") return data::is_sample_file(file);
  const std::string begin = beginning_of(file);
  return begin.starts_with("{\"line\":") && begin.find("\"input_ids\":[") != std::string::npos;
}

const TaskKind& language_modeling() {
  static const LanguageModelingKind kind;
  return kind;
}

}  // namespace mylos::tasks
