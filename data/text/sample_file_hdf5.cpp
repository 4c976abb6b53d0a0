// Layout of a sample file: the arrays of SampleSet under their names, and attributes of the root group for the rest.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/hdf5_file.hpp"
#include "data/text/sample_file.hpp"

namespace mylos::data {
namespace {

constexpr const char* format_name = "mylos samples";
constexpr std::int64_t format_version = 2, oldest_version = 1;  // 1: all tokens are supervised
constexpr std::int64_t no_id = -1;

/// The counts and the names of their attributes.
constexpr std::pair<const char*, std::uint64_t SampleCounts::*> count_attributes[] = {
    {"documents", &SampleCounts::documents},
    {"empty_documents", &SampleCounts::empty_documents},
    {"long_documents", &SampleCounts::long_documents},
    {"tokens_left_out", &SampleCounts::tokens_left_out},
    {"short_samples", &SampleCounts::short_samples}};

void write_attributes(Hdf5Writer& file, const PreparedSamples& prepared) {
  const SampleOptions& options = prepared.options;
  file.set_attribute("format", format_name);
  const bool has_marks = !prepared.set.supervised.empty();
  file.set_attribute("format_version", has_marks ? format_version : oldest_version);
  file.set_attribute("max_length", static_cast<std::int64_t>(options.max_length));
  file.set_attribute("truncate", has_marks || options.long_documents == LongDocuments::truncate ? 1 : 0);
  file.set_attribute("begin", options.begin ? *options.begin : no_id);
  file.set_attribute("end", options.end ? *options.end : no_id);
  file.set_attribute("vocabulary_size", static_cast<std::int64_t>(options.vocabulary_size));
  if (prepared.tokenizer) {
    file.set_attribute("tokenizer_pieces", static_cast<std::int64_t>(prepared.tokenizer->size));
    file.set_attribute("tokenizer_crc32c", prepared.tokenizer->checksum);
  }
  if (prepared.set.chat_template) file.set_attribute("chat_template_crc32c", *prepared.set.chat_template);
  for (const auto& [name, count] : count_attributes) {
    file.set_attribute(name, static_cast<std::int64_t>(prepared.set.counts.*count));
  }
  if (!has_marks) return;
  file.set_attribute("unsupervised_samples", static_cast<std::int64_t>(prepared.set.counts.unsupervised_samples));
  file.set_attribute("loss_on", options.loss_on ? static_cast<std::int64_t>(*options.loss_on) : no_id);
}

/// Reads the arrays of one file and checks that they are consistent. A checksum does not show who wrote the file.
class SampleFileReader {
 public:
  explicit SampleFileReader(const std::filesystem::path& path) : name_(path.string()), file_(path) {}

  PreparedSamples read() {
    file_.check_format(format_name, format_version, oldest_version);
    PreparedSamples prepared;
    read_attributes(prepared);
    SampleSet& set = prepared.set;
    set.ids = file_.read<std::int32_t>("/ids");
    set.starts = file_.read<std::uint64_t>("/starts");
    set.documents = file_.read<std::uint64_t>("/documents");
    set.lines = file_.read<std::uint64_t>("/lines");
    if (file_.integer("format_version") > oldest_version) {
      set.supervised = file_.read<std::uint8_t>("/supervised");
      check(set.supervised.size() == set.ids.size(), "/supervised has another length than /ids");
      check(std::ranges::all_of(set.supervised, [](std::uint8_t mark) { return mark <= 1; }),
            "/supervised holds other values than 0 and 1");
    }
    check_arrays(set, prepared.options);
    return prepared;
  }

 private:
  void check(bool condition, std::string_view problem) const {
    if (!condition) fail(fmt::format("{}: {}", name_, problem));
  }

  /// Reads a nonnegative integer attribute.
  std::uint64_t count(const char* attribute) const {
    const auto value = file_.integer(attribute);
    if (value < 0) fail(fmt::format("{}: {} = {} is negative", name_, attribute, value));
    return static_cast<std::uint64_t>(value);
  }

  /// Reads the id of BOS or EOS.
  std::optional<TokenId> special_token(const char* attribute, std::size_t vocabulary_size) const {
    const auto id = file_.integer(attribute);
    if (id == no_id) return std::nullopt;
    const bool is_inside = id >= 0 && static_cast<std::uint64_t>(id) < vocabulary_size;
    check(is_inside && id <= std::numeric_limits<TokenId>::max(), "BOS or EOS is not of the vocabulary");
    return static_cast<TokenId>(id);
  }

  void read_attributes(PreparedSamples& prepared) const {
    SampleOptions& options = prepared.options;
    options.max_length = count("max_length");
    if (count("truncate") != 0) options.long_documents = LongDocuments::truncate;
    options.vocabulary_size = count("vocabulary_size");
    options.begin = special_token("begin", options.vocabulary_size);
    options.end = special_token("end", options.vocabulary_size);
    if (file_.has_attribute("tokenizer_pieces")) {
      prepared.tokenizer = {count("tokenizer_pieces"), static_cast<std::uint32_t>(count("tokenizer_crc32c"))};
    }
    if (file_.has_attribute("chat_template_crc32c")) {
      prepared.set.chat_template = static_cast<std::uint32_t>(count("chat_template_crc32c"));
    }
    for (const auto& [name, field] : count_attributes) prepared.set.counts.*field = count(name);
    if (file_.integer("format_version") == oldest_version) return;
    prepared.set.counts.unsupervised_samples = count("unsupervised_samples");
    const auto loss_on = file_.integer("loss_on");
    check(loss_on >= no_id && loss_on <= static_cast<std::int64_t>(LossOn::all), "loss_on is not known");
    if (loss_on != no_id) options.loss_on = static_cast<LossOn>(loss_on);
  }

  void check_arrays(const SampleSet& set, const SampleOptions& options) const {
    const bool divides = !set.starts.empty() && set.starts.front() == 0 && std::ranges::is_sorted(set.starts) &&
                         set.starts.back() == set.ids.size();
    if (!divides) fail(fmt::format("{}: /starts does not divide {} elements", name_, set.ids.size()));
    check(set.documents.size() + 1 == set.starts.size() && set.lines.size() == set.documents.size(),
          "the arrays of the samples differ in length");
    check(set.size() > 0, "it contains no samples");
    check(std::ranges::is_sorted(set.documents) && set.documents.back() < set.counts.documents,
          "the samples are not in the order of the documents");
    for (std::size_t i = 0; i < set.size(); ++i) {
      const std::size_t length = set.length(i);
      const bool has_length = length >= 2 && length <= options.max_length;
      if (has_length && set.predicted(i) > 0) continue;
      if (has_length) fail(fmt::format("{}: sample {} has no supervised token", name_, i));
      fail(fmt::format("{}: sample {} has {} tokens, not 2 to {}", name_, i, length, options.max_length));
    }
    const auto is_outside = [&](TokenId id) {
      return id < 0 || static_cast<std::size_t>(id) >= options.vocabulary_size;
    };
    check(std::ranges::none_of(set.ids, is_outside), "a token is not of the vocabulary");
  }

  std::string name_;
  Hdf5Reader file_;
};

}  // namespace

void write_sample_file(const std::filesystem::path& path, const PreparedSamples& prepared) {
  Hdf5Writer file(path.string());
  write_attributes(file, prepared);
  file.write<std::int32_t>("/ids", prepared.set.ids);
  file.write<std::uint64_t>("/starts", prepared.set.starts);
  file.write<std::uint64_t>("/documents", prepared.set.documents);
  file.write<std::uint64_t>("/lines", prepared.set.lines);
  if (!prepared.set.supervised.empty()) file.write<std::uint8_t>("/supervised", prepared.set.supervised);
  write_text(path, file.finish());
}

bool is_sample_file(const std::filesystem::path& path) { return is_prepared_file(path, format_name); }

PreparedSamples read_sample_file(const std::filesystem::path& path) { return SampleFileReader(path).read(); }

}  // namespace mylos::data
