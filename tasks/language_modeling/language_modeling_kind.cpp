#include "tasks/language_modeling/language_modeling_kind.hpp"

#include "core/base/quantities.hpp"
#include "core/base/usage_error.hpp"
#include "families/llama/llama_body.hpp"
#include "families/llama/llama_config.hpp"
#include "families/model_directory.hpp"
#include "tasks/interface/pretrained_export.hpp"
#include "tasks/interface/text_plan.hpp"
#include "tasks/language_modeling/language_task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace mylos::tasks {
namespace {

constexpr std::array<std::string_view, 1> types = {"llama"};

constexpr std::array peers = {
    peer_alias("text-column", "text-field"),
    peer_alias("max-seq-length", "max-length"),
    peer_alias("block-size", "max-length"),
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

/// Language modelling for plan_texts.
struct DocumentText {
  using Task = LanguageTask;
  static constexpr std::string_view family = "llama";
  static constexpr auto read = families::read_llama_config;
  static constexpr auto make = families::make_llama;
  static constexpr const char* sample = "sample";
  static std::size_t& max_length(RunConfig& run) { return language_config(run).max_length; }
  static double set_dropout(families::LlamaShape&, const std::optional<double>&) { return 0.0; }
  /// Sets samples of --max-length tokens.
  static void plan_without_data(PlannedRun& planned) {
    constexpr std::size_t full_samples = 10'000;
    const std::size_t length = language_config(planned.config).max_length;
    planned.lengths.assign(std::max(full_samples, planned.config.task.batch), length);
    planned.data = fmt::format("{} samples of {} tokens each", count_text(planned.lengths.size()), length);
    planned.data_options = "--train FILE";
  }
};

TaskTraits language_modeling_traits() {
  constexpr std::string_view files = "documents (.jsonl, .pgn, .txt) or samples.h5";
  return {.name = "language-modeling",
          .title = "language modelling",
          .data_texts = {files, files, "documents"},
          .model_types = types,
          .options = language_modeling_options,
          .peer_options = peers,
          .recipes = programs,
          .metrics = {{"loss", {"eval_loss"}}, {"perplexity", {}}, {"accuracy", {"eval_accuracy"}}},
          .commands = own_commands,
          .prepare = prepare_documents,
          .is_prepared = is_prepared_documents,
          .texts = document_texts};
}

class LanguageModelingKind final : public TaskKind {
 public:
  LanguageModelingKind() : TaskKind(language_modeling_traits()) {}

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
    throw UsageError(fmt::format("--dropout {}: these models have no dropout; leave it out", *run.task.dropout));
  }
  void fit_model(RunConfig& run, const std::string& name, const OptionSources& sources,
                 const Notice& notice) const override {
    const std::size_t positions = DocumentText::read(run.task.model / "config.json").positions;
    fit_max_length(language_config(run).max_length, positions, name, sources, notice);
  }

  std::unique_ptr<Task> make(const RunConfig& run, const Notice& notice) const override {
    return std::make_unique<LanguageTask>(run, notice);
  }
  ExportedModel export_model(const TrainedModel& trained) const override {
    const data::PretrainedModel model(trained.model);
    return export_pretrained(trained.run, model,
                             DocumentText::make(families::read_llama_config(model), Precision::float32));
  }
  PlannedRun plan(const std::string& name, const std::filesystem::path& file, const RunConfig& run,
                  const OptionSources& sources, const Notice& notice) const override {
    return plan_texts<DocumentText>(name, file, run, sources, notice);
  }
};

}  // namespace

const TaskKind& language_modeling() {
  static const LanguageModelingKind kind;
  return kind;
}

}  // namespace mylos::tasks
