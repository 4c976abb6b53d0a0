#include "data/text/samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/setting_error.hpp"
#include "core/base/text/quantities.hpp"
#include "data/text/tokenize_documents.hpp"

namespace mylos::data {
namespace {

constexpr std::size_t batch_documents = 4096;
constexpr std::size_t batch_bytes = std::size_t{4} << 20;  // of text, or of ids

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos; }

class SampleBuilder {
 public:
  SampleBuilder(const std::filesystem::path& path, const SampleOptions& options, bool strict)
      : path_(path), options_(options), strict_(strict) {}

  /// Appends the samples of a tokenized document.
  void add(const Document& document) {
    const std::uint64_t number = set_.counts.documents++;
    if (document.ids.empty() || (!document.has_ids && is_blank(document.text))) {
      if (strict_) fail_at(document.line, "the document is empty");
      ++set_.counts.empty_documents;
      return;
    }
    check_ids(document);
    tokens_.clear();
    const bool begins = options_.begin && !document.begins, ends = options_.end && !document.ends;
    if (begins) tokens_.push_back(*options_.begin);
    tokens_.insert(tokens_.end(), document.ids.begin(), document.ids.end());
    if (ends) tokens_.push_back(*options_.end);
    supervised_ = document.supervised;
    if (!supervised_.empty()) {
      if (options_.long_documents == LongDocuments::split) {
        throw SettingError(
            "long", "split",
            fmt::format("{}, line {}: a sample of which only a part is supervised is not split; leave it "
                        "out, or use truncate",
                        path_.string(), document.line));
      }
      if (begins) supervised_.insert(supervised_.begin(), 0);
      if (ends) supervised_.push_back(1);
    }
    cut(number, document.line);
  }

  /// Reserves memory for the whole file, estimated from `read` of its `bytes` bytes, so that the ids are not copied as
  /// they grow. Reserved memory that is not needed is never touched.
  void reserve(std::uint64_t read, std::uint64_t bytes) {
    if (read == 0 || bytes <= read) return;
    const double scale = 1.02 * static_cast<double>(bytes) / static_cast<double>(read);
    const auto scaled = [&](std::size_t count) { return static_cast<std::size_t>(static_cast<double>(count) * scale); };
    set_.ids.values().reserve(scaled(set_.ids.size()));
    set_.starts.values().reserve(scaled(set_.starts.size()));
    set_.documents.values().reserve(scaled(set_.size()));
    set_.lines.values().reserve(scaled(set_.size()));
  }

  SampleSet finish() {
    const auto documents = set_.counts.documents;
    if (documents == 0) fail(fmt::format("{}: contains no documents", path_.string()));
    if (set_.counts.empty_documents == documents) {
      fail(fmt::format("{}: no text to train on, only {} without text", path_.string(),
                       count_of(documents, "document")));
    }
    if (set_.size() == 0 && set_.counts.unsupervised_samples > 0) {
      fail(fmt::format("{}: no sample has a supervised token among its first {}{}", path_.string(),
                       count_of(options_.max_length, "token"),
                       set_.counts.long_documents > 0 ? "; raise " + setting("max-length") : ""));
    }
    if (set_.size() == 0) {
      fail(fmt::format("{}: no document has two tokens, and a single one predicts nothing", path_.string()));
    }
    return std::move(set_);
  }

 private:
  [[noreturn]] void fail_at(std::size_t line, std::string_view problem) const {
    fail(fmt::format("{}, line {}: {}", path_.string(), line, problem));
  }

  void check_ids(const Document& document) const {
    const auto is_outside = [&](TokenId id) {
      return id < 0 || static_cast<std::size_t>(id) >= options_.vocabulary_size;
    };
    const auto found = std::ranges::find_if(document.ids, is_outside);
    if (found == document.ids.end()) return;
    const auto where = document.has_ids ? fmt::format("input_ids[{}]: ", found - document.ids.begin()) : std::string();
    fail_at(document.line,
            fmt::format("{}id {} is outside the model's vocabulary of {}", where, *found, options_.vocabulary_size));
  }

  /// Divides `tokens_` into samples.
  void cut(std::uint64_t document, std::uint64_t line) {
    const std::size_t longest = options_.max_length;
    std::span<const TokenId> rest(tokens_);
    if (rest.size() > longest) {
      ++set_.counts.long_documents;
      if (!supervised_.empty() || options_.long_documents == LongDocuments::truncate) {
        set_.counts.tokens_left_out += rest.size() - longest;
        rest = rest.first(longest);
      }
    }
    while (!rest.empty()) {
      const auto part = rest.first(std::min(longest, rest.size()));
      rest = rest.subspan(part.size());
      if (part.size() < 2) {
        ++set_.counts.short_samples;
        continue;
      }
      if (!supervised_.empty()) {
        const auto part_of_mask = std::span(supervised_).first(part.size());
        if (std::ranges::count(part_of_mask.subspan(1), 1) == 0) {
          ++set_.counts.unsupervised_samples;
          continue;
        }
        auto& supervised = set_.supervised.values();
        supervised.insert(supervised.end(), part_of_mask.begin(), part_of_mask.end());
      }
      std::vector<TokenId>& ids = set_.ids.values();
      ids.insert(ids.end(), part.begin(), part.end());
      set_.starts.values().push_back(ids.size());
      set_.documents.values().push_back(document);
      set_.lines.values().push_back(line);
    }
  }

  const std::filesystem::path& path_;
  const SampleOptions& options_;
  bool strict_;
  SampleSet set_;
  std::vector<TokenId> tokens_;
  std::vector<std::uint8_t> supervised_;  ///< of tokens_; empty: all
};

void check_options(const SampleOptions& options) {
  require(options.max_length >= 2,
          fmt::format("samples of at most {} tokens predict nothing; use at least 2", options.max_length));
  for (const auto& id : {options.begin, options.end}) {
    const bool is_inside = !id || (*id >= 0 && static_cast<std::size_t>(*id) < options.vocabulary_size);
    if (!is_inside)
      fail(fmt::format("BOS or EOS {} is outside the model's vocabulary of {}", *id, options.vocabulary_size));
  }
}

/// Reads documents until the batch is full or has `wanted` documents. Returns their number.
std::size_t read_batch(DocumentReader& reader, std::vector<Document>& batch, std::size_t wanted) {
  std::size_t bytes = 0, count = 0;
  while (count < std::min(wanted, batch_documents) && bytes < batch_bytes) {
    if (batch.size() == count) batch.emplace_back();
    if (!reader.next(batch[count])) break;
    bytes += batch[count].text.size() + batch[count].ids.size() * sizeof(TokenId);
    ++count;
  }
  return count;
}

}  // namespace

std::vector<std::size_t> SampleSet::lengths() const {
  std::vector<std::size_t> lengths(size());
  for (std::size_t sample = 0; sample < size(); ++sample) lengths[sample] = length(sample);
  return lengths;
}

std::uint64_t SampleSet::predicted(std::size_t sample) const {
  if (supervised.empty()) return length(sample) - 1;
  const auto mask = supervised.span().subspan(starts[sample] + 1, length(sample) - 1);
  return static_cast<std::uint64_t>(std::ranges::count(mask, 1));
}

std::uint64_t SampleSet::predicted() const {
  std::uint64_t count = 0;
  for (std::size_t sample = 0; sample < size(); ++sample) count += predicted(sample);
  return count;
}

std::pair<std::size_t, std::size_t> SampleSet::samples_of(std::uint64_t document) const {
  const auto [first, last] = std::equal_range(documents.begin(), documents.end(), document);
  return {static_cast<std::size_t>(first - documents.begin()), static_cast<std::size_t>(last - documents.begin())};
}

SampleSet read_samples(const std::filesystem::path& path, const Tokenizer* tokenizer, const SampleOptions& options,
                       const ReadOptions& reading) {
  return read_samples(path, document_format(path), tokenizer, options, reading);
}

SampleSet read_samples(const std::filesystem::path& path, DocumentFormat format, const Tokenizer* tokenizer,
                       const SampleOptions& options, const ReadOptions& reading) {
  check_options(options);
  const auto reader = open_documents(path, format, reading.text_field,
                                     {options.loss_on, reading.model, options.end.has_value(), reading.chat_time});
  SampleBuilder builder(path, options, reading.strict);
  std::vector<Document> batch;
  std::size_t left = reading.limit.value_or(std::numeric_limits<std::size_t>::max());
  bool is_first = true;
  while (const std::size_t count = read_batch(*reader, batch, left)) {
    const auto documents = std::span(batch).first(count);
    tokenize_documents(documents, path, tokenizer, reading.threads);
    for (const Document& document : documents) builder.add(document);
    if (std::exchange(is_first, false) && !reading.limit)
      builder.reserve(reader->lines().bytes_read(), reader->lines().bytes());
    left -= count;
  }
  SampleSet set = builder.finish();
  set.chat_template = reader->chat_template();
  return set;
}

void limit_documents(SampleSet& set, std::uint64_t count) {
  const auto samples = static_cast<std::size_t>(std::ranges::lower_bound(set.documents, count) - set.documents.begin());
  set.counts.documents = std::min(set.counts.documents, count);
  set.documents.values().resize(samples);
  set.lines.values().resize(samples);
  set.starts.values().resize(samples + 1);
  set.ids.values().resize(set.starts.back());
  if (!set.supervised.empty()) set.supervised.values().resize(set.starts.back());
}

std::vector<std::string> describe_losses(const SampleSet& set, const SampleOptions& options) {
  const SampleCounts& counts = set.counts;
  std::vector<std::string> lines;
  const auto of_documents = [&](std::uint64_t part) {
    return fmt::format("{} of {}", count_text(part), count_of(counts.documents, "document"));
  };
  const auto is_are = [](std::uint64_t count) { return count == 1 ? "is" : "are"; };
  if (counts.empty_documents > 0) {
    lines.push_back(
        fmt::format("{} {} empty and left out", of_documents(counts.empty_documents), is_are(counts.empty_documents)));
  }
  if (counts.long_documents > 0) {
    const bool is_split = set.supervised.empty() && options.long_documents != LongDocuments::truncate;
    const auto fate = is_split ? std::string("split into several samples")
                               : fmt::format("truncated: {} left out", count_of(counts.tokens_left_out, "token"));
    lines.push_back(fmt::format("{} {} longer than {} tokens and {}", of_documents(counts.long_documents),
                                is_are(counts.long_documents), count_text(options.max_length), fate));
  }
  if (counts.short_samples > 0) {
    lines.push_back(fmt::format("{} of a single token {} left out: one token predicts nothing",
                                count_of(counts.short_samples, "sample"), is_are(counts.short_samples)));
  }
  if (counts.unsupervised_samples > 0) {
    lines.push_back(fmt::format("{} without a supervised token {} left out",
                                count_of(counts.unsupervised_samples, "sample"), is_are(counts.unsupervised_samples)));
  }
  return lines;
}

}  // namespace mylos::data
