#include "train/engine/loop/run_checkpoints.hpp"

#include "core/base/error.hpp"
#include "core/base/files/json.hpp"
#include "core/base/options/option_values.hpp"
#include "core/base/process/process.hpp"
#include "core/base/setting_error.hpp"
#include "parallel/checkpoint/checkpoint_directory.hpp"
#include "parallel/checkpoint/checkpoint_file.hpp"
#include "parallel/communicator/agreement.hpp"
#include "train/engine/data_notes.hpp"
#include "train/engine/evaluation_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

namespace mylos::train {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;
using parallel::CheckpointRecord;

/// Serialises names and values of metrics, with null for NaN and infinity.
std::string metrics_json(const Metrics& metrics) {
  OrderedJson rows = OrderedJson::array();
  for (const auto& [name, value] : metrics) rows.push_back({name, value});
  return rows.dump();
}

/// `member` of the checkpoint is `text`. Errors: std::runtime_error naming file and member.
Metrics parse_metrics(const std::string& text, const fs::path& file, std::string_view member) {
  const OrderedJson rows = try_parse_ordered_json(text);
  Metrics metrics;
  const auto is_row = [](const OrderedJson& row) {
    return row.is_array() && row.size() == 2 && row[0].is_string() && (row[1].is_number() || row[1].is_null());
  };
  ensure(rows.is_array() && std::ranges::all_of(rows, is_row),
         fmt::format("{}: /run/{} is not a list of names and values", file.string(), member));
  for (const OrderedJson& row : rows) {
    const double value = row[1].is_null() ? std::numeric_limits<double>::quiet_NaN() : row[1].get<double>();
    metrics.emplace_back(row[0].get<std::string>(), value);
  }
  return metrics;
}

constexpr const char* kept_member = "best_models";

/// Returns [["500", 1.25], ...].
std::string kept_json(std::span<const ScoredStep> kept) {
  Metrics rows;
  for (const ScoredStep& each : kept) rows.emplace_back(std::to_string(each.step), each.value);
  return metrics_json(rows);
}

/// Returns an empty list for a checkpoint of a version without --keep-best.
std::vector<ScoredStep> saved_kept(const CheckpointRecord& record, const fs::path& file) {
  std::vector<ScoredStep> kept;
  if (!record.has(kept_member)) return kept;
  for (const auto& [step, value] : parse_metrics(record.text(kept_member), file, kept_member)) {
    const std::optional<std::uint64_t> number = parse_count(step, {0, std::uint64_t{1} << 53});
    ensure(number.has_value(), fmt::format("{}: /run/{}: {} is not a step", file.string(), kept_member, step));
    kept.push_back({*number, value});
  }
  return kept;
}

/// Returns nothing for a checkpoint of a version that did not save them.
TrainingScores saved_scores(const CheckpointRecord& record, bool is_first_rank) {
  if (!record.has("training_steps")) return {};
  return {.losses = record.real("training_losses"),
          .steps = record.integer("training_steps"),
          .predictions = record.integer("training_predictions"),
          .hits = is_first_rank ? record.integer("training_hits") : 0};
}

std::string value_text(const CheckpointRecord::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* count = std::get_if<std::uint64_t>(&value)) return fmt::format("{}", *count);
  return fmt::format("{}", std::get<double>(value));
}

/// Returns the member of `record` with the type of `like`. Errors: the member is missing.
CheckpointRecord::Value member_like(const CheckpointRecord& record, const std::string& name,
                                    const CheckpointRecord::Value& like) {
  if (std::holds_alternative<std::uint64_t>(like)) return record.integer(name);
  if (std::holds_alternative<double>(like)) return record.real(name);
  return record.text(name);
}

/// Adds the settings that checkpoints of earlier versions lack. Settings specific to an optimizer or schedule are
/// recorded only with it.
void add_newer_settings(CheckpointRecord& record, const TrainConfig& config) {
  record.set("learning_rate_min", config.learning_rate_min);
  if (config.schedule == nn::ScheduleKind::step) {
    record.set("decay_steps", fmt::format("{}", fmt::join(config.decay_steps, ",")));
    record.set("decay_factor", config.decay_factor);
  }
  if (config.schedule == nn::ScheduleKind::warmup_stable_decay) record.set("decay_fraction", config.decay_fraction);
  if (config.schedule == nn::ScheduleKind::polynomial) record.set("decay_power", config.decay_power);
  record.set("decay_all", std::uint64_t{config.optimizer.decay_all ? 1u : 0u});
  for (const nn::OptimizerSetting& setting : config.optimizer.kind().settings) {
    if (!setting.is_saved) continue;
    std::string member(setting.name);
    std::ranges::replace(member, '-', '_');
    const double value = config.optimizer.value(setting.name);
    setting.is_switch ? record.set(member, std::uint64_t{value != 0.0 ? 1u : 0u}) : record.set(member, value);
  }
}

/// Returns whether a run has the member only with some optimizer or schedule.
bool is_of_choice(const std::string& name) {
  const auto has_member = [&](const TrainConfig& config) {
    CheckpointRecord record;
    add_newer_settings(record, config);
    return record.has(name);
  };
  const bool is_of_schedule = std::ranges::any_of(nn::schedule_names(), [&](const nn::ScheduleName& schedule) {
    TrainConfig config;
    config.schedule = schedule.kind;
    return has_member(config);
  });
  return is_of_schedule || std::ranges::any_of(nn::optimizer_kinds(), [&](const nn::OptimizerKind& kind) {
           TrainConfig config;
           config.optimizer.name = kind.name;
           return has_member(config);
         });
}

/// Returns the checkpoint's member corresponding to `like` of this run. A checkpoint of an earlier version that lacks
/// the member was trained with the default of its optimizer and schedule. Returns nullopt if these have no such
/// setting.
std::optional<CheckpointRecord::Value> saved_member(const CheckpointRecord& record, const std::string& name,
                                                    const CheckpointRecord::Value& like) {
  if (record.has(name)) return member_like(record, name, like);
  TrainConfig config;
  const std::string& saved = record.text("optimizer");
  if (nn::find_optimizer_kind(saved) != nullptr) config.optimizer.name = saved;
  if (record.text("schedule") == nn::to_string(nn::ScheduleKind::step)) config.schedule = nn::ScheduleKind::step;
  CheckpointRecord defaults;
  add_newer_settings(defaults, config);
  if (defaults.has(name)) return member_like(defaults, name, like);
  return is_of_choice(name) ? std::nullopt : std::optional(member_like(record, name, like));
}

/// Returns whether a member changes with the length of the run; the warm-up of a --warmup ratio does.
bool follows_from_steps(std::string_view name) { return name == "steps" || name == "warmup_steps"; }

/// Returns 0 for a checkpoint of a version without half.
std::size_t skipped_steps(const CheckpointRecord& record, const fs::path& file) {
  const std::uint64_t skipped = record.has("skipped_steps") ? record.integer("skipped_steps") : 0;
  const std::uint64_t steps = record.integer("step");
  ensure(skipped <= steps, fmt::format("{}: /run/skipped_steps is {} of {} steps", file.string(), skipped, steps));
  return skipped;
}

/// Returns false for a checkpoint of a version that evaluated before it saved.
bool evaluation_due(const CheckpointRecord& record) {
  return record.has("evaluation_due") && record.integer("evaluation_due") != 0;
}

}  // namespace

RunCheckpoints::RunCheckpoints(const SavedParts& parts, const TrainConfig& config, const RunLength& length)
    : parts_(parts), config_(config), length_(length) {}

bool RunCheckpoints::enabled() const { return !config_.output.empty(); }

void RunCheckpoints::prepare(std::string description) {
  description_ = std::move(description);
  last_ = Clock::now();
  if (!enabled()) return;
  absolute_output_ = fs::absolute(config_.output).lexically_normal();
  const CheckpointConfig& checkpoints = config_.checkpoints;
  // Without an interval, only a signal writes a checkpoint.
  const std::size_t kept = checkpoints.regular() ? checkpoints.keep : 0;
  parallel::prepare_checkpoints(parts_.ranks, config_.output / parallel::checkpoints_name,
                                parallel::checkpoint_bytes(arrays()), kept);
  saves_ = parallel::on_first_rank(parts_.ranks,
                                   [&] { return parallel::last_save(config_.output / parallel::checkpoints_name); });
}

bool RunCheckpoints::due(std::size_t steps) const {
  const CheckpointConfig& checkpoints = config_.checkpoints;
  if (!enabled()) return false;
  if (checkpoints.regular() && steps == length_.steps) return true;  // --extend resumes from it
  if (checkpoints.every_steps > 0) return steps % checkpoints.every_steps == 0;
  return checkpoints.every_epoch && steps % length_.steps_per_epoch == 0;
}

bool RunCheckpoints::due_by_time() const {
  const CheckpointConfig& checkpoints = config_.checkpoints;
  const bool has_other_interval = checkpoints.every_steps > 0 || checkpoints.every_epoch;
  if (!enabled() || has_other_interval || checkpoints.every_seconds <= 0.0) return false;
  const std::chrono::duration<double> passed = Clock::now() - last_;
  return parts_.ranks.rank() == 0 && passed.count() >= checkpoints.every_seconds;
}

CheckpointReport RunCheckpoints::save(const RunProgress& progress, const BestModel& best) {
  const auto check = [this] { config_.check_output(); };
  CheckpointReport report{.step = progress.steps};
  parallel::SaveReport saved;
  ++saves_;
  try {
    collect_notes(parts_.ranks, parts_.task);
  } catch (const parallel::SharedError& error) {
    report.changed = error.what();
  }
  try {
    parallel::on_first_rank(parts_.ranks, check);
    saved = save_to(config_.output / parallel::checkpoints_name, progress, best, check);
  } catch (const std::runtime_error& error) {
    report.loss = output_loss();
    if (report.loss.empty() && config_.checkpoints.stop_on_error) throw;
    if (report.loss.empty()) report.error = error.what();
  }
  if (!report.loss.empty()) {
    saved = save_to(make_directory_elsewhere(), progress, best, {});
    is_elsewhere_ = true;
  }
  if (report.error.empty()) held_ = progress.steps;
  report.file = saved.file;
  report.bytes = saved.bytes;
  report.seconds = saved.seconds;
  report.warning = saved.warning;
  last_ = Clock::now();
  return report;
}

parallel::SaveReport RunCheckpoints::save_to(const fs::path& directory, const RunProgress& progress,
                                             const BestModel& best, const std::function<void()>& check) {
  save_notes(parts_.ranks, parts_.task, directory);  // first, so that no checkpoint is without them
  return parallel::save_checkpoint(parts_.ranks, directory, progress.steps, arrays(), record(progress, best),
                                   config_.checkpoints.keep, parts_.writer_of, check);
}

std::string RunCheckpoints::output_loss() const {
  return parallel::on_first_rank(parts_.ranks, [this] { return config_.output_loss(); });
}

/// Creates a directory beside that of the run, with a name that no other run has.
fs::path RunCheckpoints::make_directory_elsewhere() const {
  return parallel::on_first_rank(parts_.ranks, [this] {
    const fs::path output = absolute_output_.has_filename() ? absolute_output_ : absolute_output_.parent_path();
    fs::path directory = fmt::format("{}.lost-{}", output.string(), unique_key());
    fs::create_directories(directory);
    return directory;
  });
}

void RunCheckpoints::forget_lost() {
  if (!is_elsewhere_ && !output_loss().empty()) held_.reset();
}

void RunCheckpoints::withdraw(std::size_t steps) {
  parallel::on_first_rank(parts_.ranks, [&] {
    config_.check_output();
    parallel::withdraw_checkpoint(config_.output / parallel::checkpoints_name, steps);
  });
  held_.reset();
}

RunProgress RunCheckpoints::resume(BestModel& best) {
  const fs::path& file = config_.checkpoints.resume;
  const CheckpointRecord record = parallel::read_checkpoint_record(parts_.ranks, file);
  check_length(record);
  check_adapted(record);
  const RunProgress progress{.steps = record.integer("step"),
                             .skipped = skipped_steps(record, file),
                             .loss_scale = saved_loss_scale(record),
                             .training_seconds = record.real("training_seconds"),
                             .evaluation_due = evaluation_due(record),
                             .scores = saved_scores(record, parts_.ranks.rank() == 0)};
  // The best/ of another run stays with that run; this run starts without a best model.
  if (is_own(file)) {
    // A run that is extended after its patience ran out starts counting anew.
    const std::size_t since_best = config_.checkpoints.extend ? 0 : record.integer("evaluations_since_best");
    const std::optional<std::size_t> exported =
        parallel::on_first_rank(parts_.ranks, [&] { return noted_best(config_.output); });
    const bool is_known = exported && record.has("best_step");  // else of an earlier version
    best.restore({.metrics = parse_metrics(record.text("best_metrics"), file, "best_metrics"),
                  .step = is_known ? record.integer("best_step") : 0,
                  .since_best = since_best,
                  .goal = record.has("best_goal") ? std::optional(record.real("best_goal")) : std::nullopt,
                  .kept = saved_kept(record, file)},
                 is_known ? *exported : 0);
    if (is_newest(file)) held_ = progress.steps;
  }
  resume_notes(parts_.ranks, parts_.task, file.parent_path());
  parallel::load_checkpoint(parts_.ranks, file, arrays());
  return progress;
}

/// Returns whether `file` is in the run's own directory. The first rank checks.
bool RunCheckpoints::is_own(const fs::path& file) const {
  return parallel::on_first_rank(parts_.ranks, [&] {
    return fs::weakly_canonical(file.parent_path()) ==
           fs::weakly_canonical(config_.output / parallel::checkpoints_name);
  });
}

/// Returns whether a run in this directory would resume from `file`. The first rank checks.
bool RunCheckpoints::is_newest(const fs::path& file) const {
  return parallel::on_first_rank(parts_.ranks, [&] {
    return fs::weakly_canonical(parallel::resolve_checkpoint(config_.output)) == fs::weakly_canonical(file);
  });
}

parallel::CheckpointArrays RunCheckpoints::arrays() {
  const ParameterTable& table = parts_.store.table();
  parallel::CheckpointArrays arrays{.table = &table,
                                    .held = {},
                                    .copies = &parts_.strategy.copies(),
                                    .groups = {{"model", {}}},
                                    .state = {},
                                    .saved_range = {},
                                    .frozen = &frozen_};
  const std::vector<std::string> slots = parts_.optimizer.slot_names();
  for (const std::string& slot : slots) arrays.groups.push_back({"optimizer/" + slot, {}});
  const std::span<const ParameterSlice> slices = parts_.strategy.slices();
  for (std::size_t i = 0; i < slices.size(); ++i) {
    arrays.held.push_back({slices[i].unit, slices[i].begin, slices[i].end});
    arrays.groups[0].parts.push_back(slices[i].master);
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
      arrays.groups[1 + slot].parts.push_back(parts_.optimizer.slot(slot, i));
    }
  }
  for (std::size_t row = 0; row < table.state_tensors().size(); ++row) arrays.state.push_back(parts_.store.state(row));
  arrays.saved_range = [this](std::size_t unit, std::size_t rank) { return parts_.strategy.saved_range(unit, rank); };
  return arrays;
}

CheckpointRecord RunCheckpoints::length_record() const {
  CheckpointRecord record;
  record.set("steps", std::uint64_t{length_.steps});
  record.set("steps_per_epoch", std::uint64_t{length_.steps_per_epoch});
  record.set("seed", config_.seed);
  record.set("schedule", std::string(nn::to_string(config_.schedule)));
  record.set("learning_rate", config_.learning_rate);
  record.set("warmup_steps", std::uint64_t{learning_rate_schedule(config_, length_.steps).warmup_steps});
  record.set("clip", config_.clip);
  record.set("optimizer", config_.optimizer.name);
  add_newer_settings(record, config_);
  return record;
}

CheckpointRecord RunCheckpoints::record(const RunProgress& progress, const BestModel& best) const {
  CheckpointRecord record = length_record();
  const auto steps = static_cast<double>(progress.steps), epoch = static_cast<double>(length_.steps_per_epoch);
  record.set("step", std::uint64_t{progress.steps});
  record.set("epoch", steps / epoch);
  record.set("sampler_epoch", std::uint64_t{progress.steps / length_.steps_per_epoch});
  record.set("sampler_step", std::uint64_t{progress.steps % length_.steps_per_epoch});
  record.set("loss_scale", progress.loss_scale.value());
  record.set("finite_steps", std::uint64_t{progress.loss_scale.finite_steps()});
  record.set("skipped_steps", std::uint64_t{progress.skipped});
  record.set("training_seconds", progress.training_seconds);
  record.set("evaluation_due", std::uint64_t{progress.evaluation_due ? 1u : 0u});
  record.set("best_metrics", metrics_json(best.state().metrics));
  record.set("best_step", std::uint64_t{best.state().step});
  record.set("evaluations_since_best", std::uint64_t{best.state().since_best});
  if (best.state().goal) record.set("best_goal", *best.state().goal);
  record.set(kept_member, kept_json(best.state().kept));
  record.set("training_losses", progress.scores.losses);
  record.set("training_steps", progress.scores.steps);
  record.set("training_predictions", progress.scores.predictions);
  record.set("training_hits",
             static_cast<std::uint64_t>(parallel::sum(parts_.ranks, static_cast<double>(progress.scores.hits))));
  record.set("ranks", std::uint64_t{parts_.ranks.size()});
  record.set("precision", std::string(to_string(config_.precision)));
  record.set(parallel::save_number, saves_);
  record.set("configuration", description_);
  if (!adapted_.directory.empty()) {
    record.set(AdaptedModel::directory_member, adapted_.directory);
    record.set(AdaptedModel::checksum_member, adapted_.checksum);
  }
  return record;
}

/// Returns the recorded scale if the recorded run and this one both use half; else the initial one of this run.
LossScale RunCheckpoints::saved_loss_scale(const CheckpointRecord& record) const {
  const bool is_half = config_.precision == Precision::float16;
  if (!is_half || record.text("precision") != to_string(config_.precision)) {
    return first_loss_scale(config_.precision, config_.initial_loss_scale);
  }
  const double scale = record.real("loss_scale");
  ensure(is_loss_scale(scale),
         fmt::format("{}: /run/loss_scale is {}, not a power of two from {} to {}", config_.checkpoints.resume.string(),
                     scale, LossScale::least, LossScale::largest));
  return LossScale(scale, record.integer("finite_steps"));
}

/// A checkpoint of adapters has none of the values of the model, which must still be those that it was made with.
void RunCheckpoints::check_adapted(const CheckpointRecord& record) const {
  if (!record.has(AdaptedModel::directory_member) || record.integer(AdaptedModel::checksum_member) == adapted_.checksum)
    return;
  fail(fmt::format(
      "{}: its adapters belong to the model in {}, and the weights in {} or the settings of the adapters are "
      "others; restore them, or start over with {}",
      config_.checkpoints.resume.string(), record.text(AdaptedModel::directory_member), adapted_.directory,
      setting("resume", "never")));
}

void RunCheckpoints::check_length(const CheckpointRecord& record) const {
  std::string differing;
  const CheckpointRecord own = length_record();
  for (const auto& [name, value] : own.members()) {
    const std::optional<CheckpointRecord::Value> saved = saved_member(record, name, value);
    if (!saved || *saved == value || (config_.checkpoints.extend && follows_from_steps(name))) continue;
    differing +=
        fmt::format("{}{} {}, now {}", differing.empty() ? "" : "; ", name, value_text(*saved), value_text(value));
  }
  // Not compared, but required for resuming.
  record.integer("sampler_epoch");
  record.integer("sampler_step");
  record.real("loss_scale");
  ensure(differing.empty(),
         fmt::format("{}: belongs to a run with other settings: {}; use those of the run, or start over with {}",
                     config_.checkpoints.resume.string(), differing, setting("resume", "never")));
}

}  // namespace mylos::train
