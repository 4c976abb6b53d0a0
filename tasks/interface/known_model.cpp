#include "tasks/interface/known_model.hpp"

#include "core/base/error.hpp"
#include "data/huggingface/model_names.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <system_error>

namespace mylos::tasks {

std::filesystem::path find_known_directory(const std::string& name, const std::string& fetched,
                                           const std::filesystem::path& file) {
  try {
    return data::resolve_model(fetched);
  } catch (const std::runtime_error&) {
    std::error_code unreadable;                                                             // counts as missing
    if (std::filesystem::exists(data::cached_model_directory(fetched), unreadable)) throw;  // present, but damaged
    fail(fmt::format(
        "--data {}: {} is known by its sizes, and cutting data into samples needs a directory with its tokenizer; get "
        "it with: mylos fetch {}; or leave out --data",
        file.string(), name, fetched));
  }
}

}  // namespace mylos::tasks
