#include "families/model_directory.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/setting_error.hpp"
#include "core/base/text/printable.hpp"
#include "data/huggingface/adapter_config.hpp"
#include "data/huggingface/fetch_record.hpp"
#include "data/huggingface/model_names.hpp"
#include "data/huggingface/other_architectures.hpp"
#include "data/huggingface/weight_files.hpp"
#include "families/model_families.hpp"

namespace mylos::families {
namespace {

using std::filesystem::path;

/// Also false if the file system reports an error, for example because the name is too long.
bool is_file(const path& file) {
  std::error_code unreadable;
  return std::filesystem::is_regular_file(file, unreadable);
}

/// Returns the snapshot named in refs/main of a hub repository, or an empty path if there is none.
path hub_snapshot(const FileReader& files, const path& repository) {
  if (!is_file(repository / "refs" / "main")) return {};
  auto revision = files.read_text(repository / "refs" / "main");
  std::erase_if(revision, [](char character) { return character == '\n' || character == '\r' || character == ' '; });
  return revision.empty() ? path() : repository / "snapshots" / revision;
}

/// Returns the hub's directories for `name`. The original BERTs moved to google-bert, so both names are tried.
std::vector<path> hub_repositories(std::string_view name) {
  const std::string_view bare =
      name.starts_with(data::original_bert_owner) ? name.substr(data::original_bert_owner.size()) : name;
  std::string folder = "models--";
  for (const char character : name) folder += character == '/' ? std::string("--") : std::string(1, character);
  std::vector<path> repositories{data::hub_directory() / folder};
  if (bare != name) repositories.push_back(data::hub_directory() / fmt::format("models--{}", bare));
  if (name.starts_with("bert-"))
    repositories.push_back(data::hub_directory() / fmt::format("models--google-bert--{}", name));
  return repositories;
}

bool holds_model(const path& directory) {
  return is_present(directory / "config.json") && is_file(directory / "config.json");
}

/// Returns the model that an adapter names: a directory, also from that of the adapter on, or a name.
path resolve_base(const FileReader& files, const path& adapter, bool checks_sums) {
  const data::AdapterConfig config = data::read_adapter_config(files, adapter, [](const std::string&) {});
  const path file = adapter / data::adapter_config_file;
  const std::string remedy =
      fmt::format("give it as {}, and this directory as {}", setting("model"), setting("adapter"));
  ensure(!config.base.empty(), fmt::format("{}: base_model_name_or_path names no model; {}", file.string(), remedy));
  for (const path& base : {path(config.base), adapter / config.base, adapter / ".." / config.base}) {
    if (holds_model(base)) return base.lexically_normal();
  }
  ensure(adapter_directory(config.base).empty(),
         fmt::format("{}: its base, {}, is an adapter; merge that one first", file.string(), config.base));
  try {
    return resolve_model(files, config.base, checks_sums);
  } catch (const std::runtime_error& error) {
    fail(fmt::format("{}: its base is not here: {}; if it is elsewhere, {}", file.string(), error.what(), remedy));
  }
}

path resolve_directory(const FileReader& files, const path& directory, bool checks_sums) {
  if (holds_model(directory)) return directory;
  if (const path adapter = adapter_directory(directory); !adapter.empty()) {
    return resolve_base(files, adapter, checks_sums);
  }
  if (holds_model(directory / "best")) return directory / "best";
  ensure(!is_present(directory / "run.json"),
         fmt::format("{} is a run that has no best/ yet, its best model; make a model of its last checkpoint with "
                     "`mylos checkpoint export`, and give that",
                     directory.string()));
  fail(fmt::format("{} is neither a model (no config.json) nor a run's output directory (no best/config.json)",
                   directory.string()));
}

/// Returns what to do about a name that is nowhere.
std::string remedy_for(const std::string& name) {
  const std::string obstacle = data::architecture_obstacle(name);
  if (!obstacle.empty()) return obstacle;
  const data::KnownModel* known = find_known_model(name);
  if (known == nullptr || known->fetched == name) return "get it with: mylos fetch " + name;
  return fmt::format(
      "only `mylos plan` knows this name; get a model of this size with: mylos fetch {}, and give that name",
      known->fetched);
}

/// Returns the directories of our cache and of the hub's in which a model or an adapter called `name` may be.
std::vector<path> cached_directories(const std::string& name) {
  if (data::cache_folder("models").empty()) return {};
  std::vector<path> directories{data::cached_model_directory(name)};
  for (const path& repository : hub_repositories(name)) {
    if (const path snapshot = hub_snapshot(FileReader(), repository); !snapshot.empty())
      directories.push_back(snapshot);
  }
  return directories;
}

path resolve_name(const FileReader& files, const std::string& name, bool checks_sums) {
  std::vector<std::string> looked{fmt::format("{} (no such directory)", name)};
  if (!data::cache_folder("models").empty()) {
    const auto cached = data::cached_model_directory(name);
    if (holds_model(cached)) {
      if (checks_sums) data::check_fetch_record(cached);
      return cached;
    }
    looked.push_back(cached.string());
  }
  std::exception_ptr incomplete;
  for (const auto& repository : hub_repositories(name)) {
    const auto snapshot = hub_snapshot(files, repository);
    try {
      if (!snapshot.empty() && holds_model(snapshot)) return snapshot;
    } catch (const std::runtime_error&) {  // another directory may have the whole model
      incomplete = std::current_exception();
    }
    looked.push_back(repository.string());
  }
  if (incomplete) std::rethrow_exception(incomplete);
  if (const path adapter = adapter_directory(name); !adapter.empty()) return resolve_base(files, adapter, checks_sums);
  fail(fmt::format("no model \"{}\": looked at {}; {}", name, fmt::join(looked, ", "), remedy_for(name)));
}

}  // namespace

path adapter_directory(const path& given) {
  std::vector<path> directories{given, given / "best"};
  std::error_code unreadable;  // counts as missing
  if (data::is_model_name(given.string()) && !std::filesystem::exists(given, unreadable)) {
    directories = cached_directories(given.string());
  }
  for (const path& each : directories) {
    if (is_file(each / "config.json")) return {};
    if (data::is_adapter_directory(each)) return each;
  }
  return {};
}

path resolve_model(const FileReader& files, const std::string& model, bool checks_sums) {
  std::error_code code;
  const auto status = std::filesystem::status(model, code);
  if (status.type() == std::filesystem::file_type::none) {
    fail(fmt::format("model {}: {}; give a directory or a model's name", printable(model), code.message()));
  }
  if (std::filesystem::is_directory(status)) return resolve_directory(files, model, checks_sums);
  if (std::filesystem::exists(status) && data::is_pickle(model)) {
    fail(fmt::format("{} is a Python pickle, not a model directory; convert it once, in its directory: {}", model,
                     data::convert_command(model)));
  }
  if (std::filesystem::exists(status)) fail(fmt::format("{} is a file, not a model directory", model));
  if (!data::is_model_name(model)) fail(fmt::format("no directory {}", printable(model)));
  return resolve_name(files, model, checks_sums);
}

std::string hub_name(const FileReader& files, const std::string& name, const path& directory) {
  const auto normal = [](const path& given) { return std::filesystem::absolute(given).lexically_normal(); };
  std::error_code unreadable;  // counts as no directory
  const bool may_be = name.find('/') != std::string::npos && data::is_model_name(name);
  if (!may_be || std::filesystem::is_directory(name, unreadable)) return {};
  try {
    return normal(resolve_model(files, name, false)) == normal(directory) ? name : std::string();
  } catch (const std::runtime_error&) {  // nothing here has this name
    return {};
  }
}

NamedModel read_named_model(const std::string& name, BodyOutput output) {
  if (const data::KnownModel* known = find_known_model(name, output)) {
    return {std::string(known->name), std::string(known->fetched), {}, *known};
  }
  const path directory = resolve_model(FileReader(), name);
  return {name, name, directory, {FileReader(), directory / "config.json"}};
}

}  // namespace mylos::families
