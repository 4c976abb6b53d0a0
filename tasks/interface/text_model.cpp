#include "tasks/interface/text_model.hpp"

#include "core/base/error.hpp"
#include "core/base/usage_error.hpp"
#include "data/huggingface/model_names.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <system_error>

namespace mylos::tasks {

namespace {

/// Returns the directory where `mylos fetch` put a model of built-in sizes. Errors: std::runtime_error if it has not.
std::filesystem::path fetched_directory(const families::NamedModel& model, const std::filesystem::path& data) {
  try {
    return families::resolve_model(model.fetched);
  } catch (const std::runtime_error&) {
    std::error_code unreadable;                                                                   // counts as missing
    if (std::filesystem::exists(data::cached_model_directory(model.fetched), unreadable)) throw;  // but damaged
    fail(
        fmt::format("--data {}: only the sizes of {} are built in, and tokenizing data needs its directory; get it "
                    "with: mylos fetch {}; or leave out --data",
                    data.string(), model.name, model.fetched));
  }
}

}  // namespace

void fit_max_length(std::size_t& length, std::size_t positions, const std::string& name, const OptionSources& sources,
                    const Notice& notice) {
  if (length <= positions) return;
  // Never change a value given by the user.
  if (sources.was_given("max-length")) {
    throw UsageError(
        fmt::format("--max-length {}: expected at most {}, the positions that {} has", length, positions, name));
  }
  notice(fmt::format("{} has {} positions: --max-length is {}", name, positions, positions));
  length = positions;
}

families::NamedModel find_planned_model(RunConfig& run, const std::string& name, std::string_view type,
                                        const std::filesystem::path& data) {
  families::NamedModel model = families::read_named_model(name, type);
  if (!model.directory.empty()) {
    run.task.model = model.directory;
  } else if (!data.empty()) {
    run.task.model = fetched_directory(model, data);
  }
  return model;
}

}  // namespace mylos::tasks
