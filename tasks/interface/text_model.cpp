#include "tasks/interface/text_model.hpp"

#include "core/base/error.hpp"
#include "core/base/usage_error.hpp"
#include "data/huggingface/model_names.hpp"
#include "families/model_directory.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <system_error>

namespace mylos::tasks {

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

std::filesystem::path find_known_directory(const std::string& name, const std::string& fetched,
                                           const std::filesystem::path& file) {
  try {
    return families::resolve_model(fetched);
  } catch (const std::runtime_error&) {
    std::error_code unreadable;                                                             // counts as missing
    if (std::filesystem::exists(data::cached_model_directory(fetched), unreadable)) throw;  // present, but damaged
    fail(
        fmt::format("--data {}: only the sizes of {} are built in, and tokenizing data needs its directory; get it "
                    "with: mylos fetch {}; or leave out --data",
                    file.string(), name, fetched));
  }
}

}  // namespace mylos::tasks
