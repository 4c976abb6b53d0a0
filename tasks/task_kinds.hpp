#pragma once

#include "tasks/interface/task_kind.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// The registry of task kinds.
namespace mylos::tasks {

/// Returns all kinds, the default first.
std::vector<const TaskKind*> task_kinds();

/// Returns the kind of runs and models that do not name one.
const TaskKind& default_task_kind();

/// Returns the kind called `name`, or null if there is none.
const TaskKind* find_task_kind(std::string_view name);

/// Returns the kind that serves the model in `directory`, according to its config.json: `preferred` if that does, else
/// that of its class in `architectures`, else the first; null if there is none.
const TaskKind* kind_of_model(const FileReader& files, const std::filesystem::path& directory,
                              const TaskKind* preferred = nullptr);
/// Returns the kind that has `name` among its built-in model sizes; null if there is none.
const TaskKind* kind_of_known_model(std::string_view name);

/// Returns which task serves which model types: "TYPE with TASK, TYPE with TASK".
std::string pairs_text();

/// Registers a kind for the lifetime of this object. Programs with their own tasks create one before running a command.
class RegisteredTaskKind {
 public:
  explicit RegisteredTaskKind(const TaskKind& kind);
  ~RegisteredTaskKind();
  RegisteredTaskKind(const RegisteredTaskKind&) = delete;
  RegisteredTaskKind& operator=(const RegisteredTaskKind&) = delete;

 private:
  const TaskKind* kind_;
};

/// Returns the default configuration of `command` (its name) for runs of `kind`.
RunConfig default_run(const TaskKind& kind, std::string_view command);

}  // namespace mylos::tasks
