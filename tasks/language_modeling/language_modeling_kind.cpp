#include "tasks/language_modeling/language_modeling_kind.hpp"

#include "core/base/usage_error.hpp"
#include "families/llama/llama_body.hpp"
#include "families/llama/llama_config.hpp"
#include "families/model_directory.hpp"
#include "tasks/interface/pretrained_export.hpp"
#include "tasks/interface/text_model.hpp"
#include "tasks/interface/trained_model.hpp"
#include "tasks/language_modeling/language_modeling_options.hpp"
#include "tasks/language_modeling/language_task.hpp"
#include "tasks/language_modeling/planned_documents.hpp"
#include "tasks/language_modeling/prepared_documents.hpp"

#include <fmt/format.h>

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

class LanguageModelingKind final : public TaskKind {
 public:
  std::string_view name() const override { return "language-modeling"; }
  std::string_view title() const override { return "language modelling"; }
  DataTexts data_texts() const override {
    constexpr std::string_view files = "documents (.jsonl, .pgn, .txt) or samples.h5";
    return {files, files, "documents"};
  }
  std::span<const std::string_view> model_types() const override { return types; }

  void set_defaults(RunConfig& run, std::string_view command) const override {
    run.settings = LanguageConfig();
    if (command == "generate") run.task.batch = 1;  // answers each typed line before the next one
  }
  std::vector<Option<RunConfig>> options() const override { return language_modeling_options(); }
  std::span<const PeerOption> peer_options() const override { return peers; }
  std::span<const Recipe> recipes() const override { return programs; }
  std::vector<Choice> metrics() const override {
    return {{"loss", {"eval_loss"}}, {"perplexity", {}}, {"accuracy", {"eval_accuracy"}}};
  }
  void check(const RunConfig& run) const override {
    if (run.task.dropout.value_or(0.0) == 0.0) return;
    throw UsageError(fmt::format("--dropout {}: these models have no dropout; leave it out", *run.task.dropout));
  }
  void fit_model(RunConfig& run, const std::string& name, const OptionSources& sources,
                 const Notice& notice) const override {
    const std::size_t positions = families::read_llama_config(run.task.model / "config.json").positions;
    fit_max_length(language_config(run).max_length, positions, name, sources, notice);
  }

  std::unique_ptr<Task> make(const RunConfig& run, const Notice& notice) const override {
    return std::make_unique<LanguageTask>(run, notice);
  }
  std::unique_ptr<nn::Model> network(const std::string& name, Precision precision) const override {
    const families::NamedModel model = families::read_named_model(name, "llama");
    return families::make_llama(families::read_llama_config(model.config), precision);
  }
  std::unique_ptr<train::ModelExporter> trained_exporter(const TrainedModel& trained,
                                                         const ParameterTable& table) const override {
    return pretrained_exporter(trained.run, data::PretrainedModel(trained.model), table);
  }
  PlannedRun plan(const std::string& name, const std::filesystem::path& file, const RunConfig& run,
                  const OptionSources& sources, const Notice& notice) const override {
    return plan_documents(name, file, run, sources, notice);
  }

  void prepare(const RunConfig& run, const std::filesystem::path& file, const std::filesystem::path& output,
               const Notice& notice) const override {
    prepare_documents(run, file, output, notice);
  }
  bool is_prepared(const std::filesystem::path& file) const override { return is_prepared_documents(file); }
  std::vector<std::string> texts(const std::filesystem::path& file) const override { return document_texts(file); }
};

}  // namespace

const TaskKind& language_modeling() {
  static const LanguageModelingKind kind;
  return kind;
}

}  // namespace mylos::tasks
