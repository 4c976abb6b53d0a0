#include "tasks/interface/task_kind.hpp"

#include "core/base/usage_error.hpp"

#include <fmt/format.h>

namespace mylos::tasks {

void TaskKind::prepare(const RunConfig&, const std::filesystem::path&, const std::filesystem::path&,
                       const Notice&) const {
  throw UsageError(
      fmt::format("prepare: {} has nothing to prepare; train and eval read its data as they are", title()));
}

}  // namespace mylos::tasks
