#include "tasks/question_answering/question_answering_kind.hpp"

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "core/base/text/python_text.hpp"
#include "core/base/text/quantities.hpp"
#include "core/base/usage_error.hpp"
#include "data/squad/feature_file.hpp"
#include "data/squad/squad.hpp"
#include "data/squad/squad_files.hpp"
#include "families/model_families.hpp"
#include "tasks/interface/text_kind.hpp"
#include "tasks/question_answering/squad_task.hpp"
#include "tasks/question_answering/squad_windows.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>

namespace mylos::tasks {
namespace {

data::SquadDataset read_dataset(const RunConfig& run, const std::filesystem::path& file, const Notice& notice) {
  const SquadConfig& config = squad_config(run);
  data::SquadDataset dataset = data::read_squad(file);
  if (config.squad) dataset.version = data::parse_squad_version(*config.squad);
  if (run.task.train_limit) data::limit_questions(dataset, *run.task.train_limit);
  if (config.repair_offsets) repair_answers(dataset, file.string(), false, notice);
  check_answers(dataset, file.string(), config.strict, notice);
  return dataset;
}

data::PreparedFeatures prepare(const RunConfig& run, const std::filesystem::path& file, const Notice& notice) {
  families::notice_tokenizer_choice(FileReader(), run.task.model, notice);
  return data::prepare_features(read_dataset(run, file, notice),
                                *families::read_tokenizer(FileReader(), run.task.model),
                                feature_options(squad_config(run), false));
}

/// Writes a window as a human-readable line. Offsets refer to the context and are null for other tokens; labels are
/// null if there are none.
std::string feature_line(const data::PreparedFeatures& prepared, const data::Feature& feature) {
  const data::FeatureSet& features = prepared.features;
  std::vector<data::TokenId> ids;
  features.append_input_ids(feature, ids);
  const std::size_t first = features.context_position(feature);
  const auto ranges = features.context_offsets(feature);
  nlohmann::ordered_json types = nlohmann::ordered_json::array(), offsets = types;
  for (std::size_t token = 0; token < ids.size(); ++token) {
    const bool is_context = token >= first && token < first + ranges.size();
    types.push_back(token < first ? 0 : features.layout.second_type);
    offsets.push_back(is_context
                          ? nlohmann::ordered_json::array({ranges[token - first].begin, ranges[token - first].end})
                          : nlohmann::ordered_json(nullptr));
  }
  const auto label = [](std::int32_t position) {
    return position < 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(position);
  };
  const nlohmann::ordered_json line = {{"id", prepared.dataset.questions[feature.question].id},
                                       {"window", feature.window},
                                       {"input_ids", ids},
                                       {"token_type_ids", types},
                                       {"offsets", offsets},
                                       {"start", label(feature.start)},
                                       {"end", label(feature.end)}};
  return line.dump() + "\n";
}

void write_lines(const std::filesystem::path& path, const data::PreparedFeatures& prepared) {
  StagedFile file(path);
  for (const data::Feature& feature : prepared.features.features) file.write(feature_line(prepared, feature));
  file.commit();
}

/// Cuts the questions of `file` with the vocabulary of `run.task.model`, and writes the windows to `output`: as a
/// feature file if its name ends in .h5, else as one human-readable JSON object per line. `notice` gets the counts.
/// Errors: std::runtime_error naming the file.
void prepare_questions(const RunConfig& run, const std::filesystem::path& file, const std::filesystem::path& output,
                       const Notice& notice) {
  const data::PreparedFeatures prepared = prepare(run, file, notice);
  output.extension() == ".h5" ? data::write_feature_file(output, prepared) : write_lines(output, prepared);
  notice(fmt::format("{}: {} questions, {} windows", output.string(), prepared.dataset.questions.size(),
                     prepared.features.features.size()));
}

/// Returns whether prepare_questions wrote this file.
bool is_prepared_questions(const std::filesystem::path& file) {
  if (file.extension() == ".h5") return data::is_feature_file(file);
  const std::string begin = beginning_of(file);
  return begin.starts_with("{\"id\":") && begin.find(",\"window\":0,\"input_ids\":[") != std::string::npos;
}

constexpr std::array peers = {
    peer_alias("dataset-name", "dataset"),
    peer_alias("max-seq-length", "max-length"),
    peer_alias("n-best-size", "n-best"),
    peer_alias("null-score-diff-threshold", "null-threshold"),
    peer_switch("version-2-with-negative", "squad", "2.0", "train"),
    PeerOption{"dataset-config-name", false, "plain_text,squad,squad_v2,None", "there is one of each",
               "use --dataset squad or squad_v2"},
};

// torch.optim.AdamW decays all tensors by 0.01. Only Trainer clips gradients.
constexpr std::array programs = {
    Recipe{"lightning-fsdp-squad", "BERT on SQuAD v1.1 with PyTorch Lightning and FSDP",
           "--epochs 3 --batch-per-rank 16 --learning-rate 3e-5 --weight-decay 0.01 --decay-all --schedule constant "
           "--clip 0 --max-length 384 --long truncate --precision half --mode sharded",
           "parameters and activations are stored in half precision with float master weights, where the program "
           "computes by autocast"},
    Recipe{"lightning-ddp-squad", "BERT on 10,000 questions of SQuAD v1.1 with PyTorch Lightning and DDP",
           "--epochs 4 --batch-per-rank 4 --learning-rate 3e-5 --weight-decay 0.01 --decay-all --schedule constant "
           "--clip 0 --train-limit 10000 --dev-limit 500 --best-by loss --mode replicated",
           ""},
    Recipe{"pauls-squad2", "BERT on SQuAD v2.0 with PyTorch Lightning, and DDP, FSDP or DeepSpeed",
           "--squad 2.0 --epochs 2 --batch-per-rank 8 --learning-rate 5e-5 --adam-epsilon 1e-6 --weight-decay 0 "
           "--schedule constant --clip 0 --long truncate --best-by training_loss --patience 3",
           "--train-fraction stands for the part of the data that the program selects, and --tf32 for its matrix "
           "products on GPUs"},
    Recipe{"run_qa", "transformers' run_qa.py",
           "--epochs 3 --batch-per-rank 8 --learning-rate 5e-5 --weight-decay 0 --schedule linear --warmup 0 --clip 1 "
           "--max-length 384 --doc-stride 128",
           ""},
};

constexpr TaskCommand own_commands[] = {{"ask", ask}, {"score", score}};

/// Sets the files of a named data set.
void resolve_dataset(RunConfig& run, const OptionSources& sources) {
  const std::string& dataset = squad_config(run).dataset;
  if (dataset.empty() || sources.is_overridden("dataset", "train")) return;
  const data::SquadFiles files = data::find_squad_files(dataset);
  run.task.train = files.train;
  const bool is_evaluated = run.task.do_eval || !run.task.do_train;
  const bool has_dev = sources.was_given("dev") || (sources.was_configured("dev") && !sources.was_given("dataset"));
  if (is_evaluated && !has_dev) run.task.dev = files.dev;
}

/// Number of windows in plans without data, each of full length: SQuAD v1.1's training questions, cut with the
/// uncased vocabulary of 30,522 tokens at 384 tokens with 128 shared.
constexpr std::size_t full_windows = 88'524;

std::size_t& max_length(RunConfig& run) { return squad_config(run).max_length; }

void plan_full_windows(PlannedRun& planned) {
  const std::size_t length = max_length(planned.config);
  planned.lengths.assign(full_windows, length);
  planned.data =
      fmt::format("{} windows of {} tokens each, as many windows as SQuAD v1.1 has", count_text(full_windows), length);
  planned.data_options = "--dataset squad --do-train";
}

std::unique_ptr<TextTask> make_squad_task(const FileReader& files, const RunConfig& run, const Notice& notice) {
  return std::make_unique<SquadTask>(files, run, notice);
}

/// Returns each context once, and each question, as they are tokenized when they are cut into windows.
std::vector<std::string> question_texts(const std::filesystem::path& file) {
  data::SquadDataset dataset = data::read_squad(file);
  std::vector<std::string> texts = std::move(dataset.contexts);
  for (const data::SquadQuestion& each : dataset.questions) texts.emplace_back(python_lstrip(each.question));
  return texts;
}

TaskTraits question_answering_traits() {
  return {.name = "question-answering",
          .title = "question answering",
          .data_texts = {"questions.json or features.h5", "questions.json, or for eval also features.h5", "questions"},
          .options = question_answering_options,
          .peer_options = peers,
          .recipes = programs,
          .metrics = {{"loss", {"eval_loss"}}, {"f1", {"eval_f1"}}, {"exact", {"exact_match", "eval_exact_match"}}},
          .commands = own_commands,
          .prepare = prepare_questions,
          .is_prepared = is_prepared_questions,
          .texts = question_texts,
          .report = report_answers};
}

class QuestionAnsweringKind final : public TextKind {
 public:
  QuestionAnsweringKind()
      : TextKind(question_answering_traits(), {.head = question_answering_head(),
                                               .sample = "window",
                                               .max_length = max_length,
                                               .plan_without_data = plan_full_windows,
                                               .make = make_squad_task}) {}

  void set_defaults(RunConfig& run, std::string_view command) const override {
    SquadConfig config;
    // The same as in transformers' question-answering pipeline, which `ask` reproduces.
    if (command == "ask") config.max_answer_length = 15;
    run.settings = config;
  }
  void resolve(RunConfig& run, const OptionSources& sources, std::string_view command) const override {
    if (command == "train") resolve_dataset(run, sources);
  }
  void check(const RunConfig& run) const override {
    const SquadConfig& config = squad_config(run);
    if (config.truncate || config.doc_stride < config.max_length) return;
    throw TaskError(
        fmt::format("--doc-stride {}: expected less than --max-length, {}", config.doc_stride, config.max_length));
  }

  std::vector<std::pair<std::string, std::string>> facts(const nlohmann::json& run) const override {
    const auto resolved = run.find("resolved");
    if (resolved == run.end() || !resolved->is_object() || !resolved->contains("squad")) return {};
    return {{"rules", "SQuAD " + plain_text((*resolved)["squad"])}};
  }
};

}  // namespace

const TaskKind& question_answering() {
  static const QuestionAnsweringKind kind;
  return kind;
}

}  // namespace mylos::tasks
