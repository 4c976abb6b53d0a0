#pragma once

#include "tasks/interface/task_kind.hpp"

#include <filesystem>
#include <string_view>
#include <vector>

/// The table of tasks.
namespace mylos::tasks {

/// All kinds, the default first.
std::vector<const TaskKind*> task_kinds();

/// The kind of runs and models that nothing says anything of.
const TaskKind& default_task_kind();

/// The kind called `name`; null where there is none.
const TaskKind* find_task_kind(std::string_view name);

/// The kind that serves the model in `directory`, as its config.json says; null where none does or there is none.
const TaskKind* kind_of_model(const std::filesystem::path& directory);
/// The kind that knows a model called `name` by its sizes; null where none does.
const TaskKind* kind_of_known_model(std::string_view name);

/// Adds a kind for as long as it lives. Programs with tasks of their own do so before they run a command.
class RegisteredTaskKind {
 public:
  explicit RegisteredTaskKind(const TaskKind& kind);
  ~RegisteredTaskKind();
  RegisteredTaskKind(const RegisteredTaskKind&) = delete;
  RegisteredTaskKind& operator=(const RegisteredTaskKind&) = delete;

 private:
  const TaskKind* kind_;
};

/// What a run of `kind` is told where nothing is said to `command` (CommandBit).
RunConfig default_run(const TaskKind& kind, unsigned command);

}  // namespace mylos::tasks
