#include "data/images/cifar_images.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "data/images/memory_images.hpp"
#include "data/images/pickle.hpp"

namespace mylos::data {
namespace {

namespace fs = std::filesystem;

constexpr ImageShape cifar_shape{32, 32, 3};

/// One of the four file formats, with the names of its files.
struct CifarForm {
  const char* training;  ///< prefix of the file names; CIFAR-10 has several training files
  const char* test;
  const char* ending;
  const char* names;
  bool is_pickled;
  bool is_fine;
};

constexpr CifarForm cifar_forms[] = {{"data_batch", "test_batch", ".bin", "batches.meta.txt", false, false},
                                     {"data_batch", "test_batch", "", "batches.meta", true, false},
                                     {"train", "test", ".bin", "fine_label_names.txt", false, true},
                                     {"train", "test", "", "meta", true, true}};

/// Finds files named `stem`, optionally followed by "_..." or "1", and then `ending`. Sorted by length, so that 10
/// follows 9.
std::vector<fs::path> files_named(const FileReader& files, const fs::path& directory, const std::string& stem,
                                  const std::string& ending) {
  std::vector<fs::path> named;
  for (const DirectoryEntry& entry : files.list_directory(directory)) {
    if (!entry.name.starts_with(stem) || !entry.name.ends_with(ending) || entry.kind != EntryKind::file) continue;
    const std::string number = entry.name.substr(stem.size(), entry.name.size() - stem.size() - ending.size());
    const bool is_number = number.find_first_not_of("_0123456789") == std::string::npos;
    if (is_number && (number.empty() || stem.ends_with("_batch"))) named.push_back(directory / entry.name);
  }
  std::ranges::sort(named, {}, [](const fs::path& file) { return std::pair(file.string().size(), file.string()); });
  return named;
}

std::optional<CifarFiles> find_form(const FileReader& files, const fs::path& directory, const CifarForm& form,
                                    ImagePart part) {
  CifarFiles found{.is_pickled = form.is_pickled, .is_fine = form.is_fine};
  const bool is_training = part == ImagePart::training;
  found.files = files_named(files, directory, is_training ? form.training : form.test, form.ending);
  if (found.files.empty())
    found.files = files_named(files, directory, is_training ? form.test : form.training, form.ending);
  if (found.files.empty()) return std::nullopt;
  if (fs::is_regular_file(directory / form.names)) found.names = directory / form.names;
  return found;
}

/// Converts an image from CHW to HWC and appends it.
void add_planes(std::vector<char>& pixels, std::string_view planes) {
  const std::size_t plane = cifar_shape.height * cifar_shape.width;
  for (std::size_t i = 0; i < plane; ++i) {
    for (std::size_t c = 0; c < cifar_shape.channels; ++c) pixels.push_back(planes[c * plane + i]);
  }
}

/// Reads records of a label (or a coarse and a fine label) and the colour planes.
std::size_t read_binary(const fs::path& file, bool is_fine, MemoryImages::Content& content) {
  const std::string bytes = read_text(file);
  const std::size_t labels = is_fine ? 2 : 1, record = labels + cifar_shape.size();
  if (bytes.empty() || bytes.size() % record != 0) {
    fail(fmt::format("{} has {} bytes, not a multiple of the {} bytes of a CIFAR-{} image", file.string(), bytes.size(),
                     record, is_fine ? 100 : 10));
  }
  for (std::size_t begin = 0; begin < bytes.size(); begin += record) {
    content.labels.push_back(static_cast<unsigned char>(bytes[begin + labels - 1]));
    add_planes(content.pixels, std::string_view(bytes).substr(begin + labels, cifar_shape.size()));
  }
  return bytes.size() / record;
}

std::size_t read_pickled_batch(std::string_view bytes, const char* label_key, MemoryImages::Content& content) {
  const Pickle pickle(bytes);
  const auto data = pickle.find(pickle.root(), "data"), labels = pickle.find(pickle.root(), label_key);
  if (!data || !labels) fail(fmt::format("has no dictionary with data and {}", label_key));
  const PickledArray array = pickled_array(pickle, *data);
  const auto& items = pickle[*labels].items;
  const bool fits = array.shape.size() == 2 && array.shape[1] == cifar_shape.size() && array.shape[0] == items.size();
  if (!fits) {
    fail(fmt::format("has {} labels for an array of shape ({}); expected (labels, {})", items.size(),
                     fmt::join(array.shape, ", "), cifar_shape.size()));
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Pickle::Value& label = pickle[items[i]];
    const bool is_small = label.kind == Pickle::Kind::integer && label.integer >= 0 && label.integer < 256;
    ensure(is_small, fmt::format("has no label between 0 and 255 for image {}", i));
    content.labels.push_back(static_cast<std::int32_t>(label.integer));
    add_planes(content.pixels, std::string_view(array.bytes).substr(i * cifar_shape.size(), cifar_shape.size()));
  }
  return items.size();
}

/// Calls `read` on the content of a pickle, and prefixes its errors with the file name.
template <class Read>
auto read_pickle(const fs::path& file, const Read& read) {
  const std::string bytes = read_text(file);
  try {
    return read(bytes);
  } catch (const std::runtime_error& error) {
    fail(fmt::format("{} {}", file.string(), error.what()));
  }
}

std::vector<std::string> pickled_names(std::string_view bytes, const char* key) {
  const Pickle pickle(bytes);
  const auto list = pickle.find(pickle.root(), key);
  if (!list) fail(fmt::format("has no dictionary with {}", key));
  std::vector<std::string> names;
  for (const auto item : pickle[*list].items) {
    ensure(pickle[item].kind == Pickle::Kind::text, fmt::format("has {} that are not texts", key));
    names.emplace_back(pickle[item].text);
  }
  return names;
}

/// Reads one name per line, without trailing empty lines.
std::vector<std::string> names_in_lines(const fs::path& file) {
  std::vector<std::string> names;
  const std::string text = read_text(file);
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    std::string name = text.substr(begin, end - begin);
    if (name.ends_with('\r')) name.pop_back();
    if (!name.empty()) names.push_back(name);
    begin = end + 1;
  }
  return names;
}

std::vector<std::string> label_names_of(const CifarFiles& files) {
  const std::size_t count = files.is_fine ? 100 : 10;
  if (!files.names) return numbered_labels(count);
  const auto read = [&](std::string_view bytes) {
    return pickled_names(bytes, files.is_fine ? "fine_label_names" : "label_names");
  };
  auto names = files.is_pickled ? read_pickle(*files.names, read) : names_in_lines(*files.names);
  if (names.size() != count) {
    fail(fmt::format("{} has {} names of labels, CIFAR-{} has {}", files.names->string(), names.size(), count, count));
  }
  return names;
}

MemoryImages::Content read_content(const CifarFiles& files) {
  MemoryImages::Content content{.shape = cifar_shape, .label_names = label_names_of(files)};
  for (const fs::path& file : files.files) {
    const auto read = [&](std::string_view bytes) {
      return read_pickled_batch(bytes, files.is_fine ? "fine_labels" : "labels", content);
    };
    const std::size_t images = files.is_pickled ? read_pickle(file, read) : read_binary(file, files.is_fine, content);
    content.files.push_back({file, images});
  }
  return content;
}

}  // namespace

std::optional<CifarFiles> find_cifar_files(const FileReader& files, const fs::path& directory, ImagePart part) {
  for (const CifarForm& form : cifar_forms) {
    if (auto found = find_form(files, directory, form, part)) return found;
  }
  return std::nullopt;
}

std::unique_ptr<ImageSet> read_cifar_images(const FileReader& files, const CifarFiles& found) {
  MemoryImages::Content content;
  files.read_once(
      found.files.front(), [&] { content = read_content(found); }, content);
  return std::make_unique<MemoryImages>(std::move(content));
}

}  // namespace mylos::data
