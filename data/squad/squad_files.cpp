#include "data/squad/squad_files.hpp"

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "core/base/setting_error.hpp"
#include "data/huggingface/fetch_record.hpp"
#include "data/huggingface/model_names.hpp"

#include <fmt/format.h>

#include <string>

namespace mylos::data {
namespace {

using std::filesystem::path;

std::string_view without_owner(std::string_view name) {
  constexpr std::string_view owner = "rajpurkar/";
  return name.starts_with(owner) ? name.substr(owner.size()) : name;
}

/// Returns the file that datasets downloaded from a URL ending in `name`. A metadata file beside each download contains
/// its URL. Empty if there is none.
path downloaded_file(const path& folder, const std::string& name) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    if (entry.path().extension() != ".json") continue;
    const path file = path(entry.path()).replace_extension();
    if (!std::filesystem::is_regular_file(file)) continue;
    const auto about = try_parse_json(read_text(entry.path()));
    if (!about.is_object() || !about.contains("url") || !about["url"].is_string()) continue;
    if (about["url"].get<std::string>().ends_with("/" + name)) return file;
  }
  return {};
}

}  // namespace

bool is_squad_name(std::string_view name) {
  return without_owner(name) == "squad" || without_owner(name) == "squad_v2";
}

SquadFiles find_squad_files(std::string_view name) {
  require(is_squad_name(name), "find_squad_files: no name of SQuAD");
  const std::string version = without_owner(name) == "squad" ? "v1.1" : "v2.0";
  const std::string train = fmt::format("train-{}.json", version), dev = fmt::format("dev-{}.json", version);
  const path ours = cache_directory() / "squad";
  if (std::filesystem::is_regular_file(ours / train) && std::filesystem::is_regular_file(ours / dev)) {
    check_fetch_record(ours, {train, dev});
    return {ours / train, ours / dev};
  }
  const path theirs = datasets_directory() / "downloads";
  SquadFiles files{downloaded_file(theirs, train), downloaded_file(theirs, dev)};
  if (!files.train.empty() && !files.dev.empty()) return files;
  fail(fmt::format("no {} and {}: looked at {} and {}; get them with: mylos fetch squad, or name files with {} and {}",
                   train, dev, ours.string(), theirs.string(), setting("train"), setting("dev")));
}

}  // namespace mylos::data
