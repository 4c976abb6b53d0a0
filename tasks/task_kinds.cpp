#include "tasks/task_kinds.hpp"

#include "data/huggingface/model_type.hpp"
#include "tasks/image_classification/image_classification_kind.hpp"
#include "tasks/language_modeling/language_modeling_kind.hpp"
#include "tasks/question_answering/question_answering_kind.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace mylos::tasks {
namespace {

/// Kinds registered by other programs.
std::vector<const TaskKind*>& registered_kinds() {
  static std::vector<const TaskKind*> kinds;
  return kinds;
}

/// The members of a model's config.json that select its task.
struct ModelClass {
  std::string type, architecture;
};

/// Returns empty strings if the directory has no readable configuration; errors in it are reported by later reads.
ModelClass model_class_in(const FileReader& files, const std::filesystem::path& directory) {
  try {
    const Json config = read_json(files, directory / "config.json");
    return {data::model_type_of(config, {}), data::first_architecture(config)};
  } catch (const std::runtime_error&) {
    return {};
  }
}

template <class Predicate>
const TaskKind* find_kind_that(const Predicate& serves) {
  const std::vector<const TaskKind*> kinds = task_kinds();
  const auto found = std::ranges::find_if(kinds, serves);
  return found == kinds.end() ? nullptr : *found;
}

}  // namespace

std::vector<const TaskKind*> task_kinds() {
  std::vector<const TaskKind*> kinds = {&question_answering(), &language_modeling(), &image_classification()};
  kinds.insert(kinds.end(), registered_kinds().begin(), registered_kinds().end());
  return kinds;
}

const TaskKind& default_task_kind() { return question_answering(); }

const TaskKind* find_task_kind(std::string_view name) {
  return find_kind_that([&](const TaskKind* kind) { return kind->name() == name; });
}

const TaskKind* kind_of_model(const FileReader& files, const std::filesystem::path& directory,
                              const TaskKind* preferred) {
  const ModelClass model = model_class_in(files, directory);
  const auto serves = [&](const TaskKind* kind) { return kind->serves(model.type); };
  if (preferred != nullptr && serves(preferred)) return preferred;
  const TaskKind* named =
      find_kind_that([&](const TaskKind* kind) { return serves(kind) && kind->is_of_class(model.architecture); });
  return named != nullptr ? named : find_kind_that(serves);
}

const TaskKind* kind_of_known_model(std::string_view name) {
  return find_kind_that([&](const TaskKind* kind) { return kind->knows_model(name); });
}

std::string pairs_text() {
  std::vector<std::string> pairs;
  for (const TaskKind* kind : task_kinds()) {
    for (const std::string_view type : kind->model_types())
      pairs.push_back(fmt::format("{} with {}", type, kind->name()));
  }
  return fmt::format("{}", fmt::join(pairs, ", "));
}

RegisteredTaskKind::RegisteredTaskKind(const TaskKind& kind) : kind_(&kind) { registered_kinds().push_back(&kind); }

RegisteredTaskKind::~RegisteredTaskKind() { std::erase(registered_kinds(), kind_); }

RunConfig default_run(const TaskKind& kind, std::string_view command) {
  RunConfig run;
  kind.set_defaults(run, command);
  return run;
}

}  // namespace mylos::tasks
