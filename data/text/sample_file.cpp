#include "data/text/sample_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/setting_error.hpp"
#include "data/text/json_documents.hpp"

namespace mylos::data {
namespace {

constexpr std::size_t written_at_once = std::size_t{1} << 20;  // bytes

std::string id_name(const std::optional<TokenId>& id) { return id ? fmt::format("{}", *id) : "none"; }

std::string template_text(const std::optional<std::uint32_t>& checksum) {
  return checksum ? fmt::format("a chat template (CRC32C {:08x})", *checksum) : "no chat template";
}

const char* long_name(std::optional<LongDocuments> value, bool has_marks) {
  return value.value_or(has_marks ? LongDocuments::truncate : LongDocuments::split) == LongDocuments::split
             ? "split"
             : "truncate";
}

const char* loss_name(std::optional<LossOn> value, bool has_marks) {
  constexpr const char* names[] = {"assistant", "completion", "all"};
  return value || !has_marks ? names[static_cast<int>(value.value_or(LossOn::all))] : "its default";
}

/// Compares one setting of the file and the run. Throws with both values if they differ.
void compare(const std::filesystem::path& path, std::string_view what, const std::string& prepared,
             const std::string& now) {
  if (prepared == now) return;
  fail(fmt::format(
      "{} was prepared with {}{}{}, this run has {}; prepare it again with `mylos prepare`, or run with the same",
      path.string(), what, what.empty() ? "" : " ", prepared, now));
}

}  // namespace

void check_prepared_for(const PreparedSamples& prepared, const std::filesystem::path& path,
                        const std::optional<TokenizerIdentity>& tokenizer, const SampleOptions& options) {
  const SampleOptions& made = prepared.options;
  if (prepared.tokenizer && tokenizer) {
    compare(path, "", identity_text(*prepared.tokenizer), identity_text(*tokenizer));
  }
  if (prepared.set.chat_template) {
    compare(path, "", template_text(prepared.set.chat_template), template_text(options.chat_template));
  }
  compare(path, setting("max-length"), fmt::format("{}", made.max_length), fmt::format("{}", options.max_length));
  const bool has_marks = !prepared.set.supervised.empty();
  compare(path, setting("long"), long_name(made.long_documents, has_marks),
          long_name(options.long_documents, has_marks));
  compare(path, setting("loss-on"), loss_name(made.loss_on, has_marks), loss_name(options.loss_on, has_marks));
  compare(path, "BOS", id_name(made.begin), id_name(options.begin));
  compare(path, "EOS", id_name(made.end), id_name(options.end));
  if (made.vocabulary_size <= options.vocabulary_size) return;
  const auto largest = std::ranges::max_element(prepared.set.ids);
  if (largest == prepared.set.ids.end() || static_cast<std::size_t>(*largest) < options.vocabulary_size) return;
  fail(fmt::format("{}: id {} is outside the model's vocabulary of {}; the file was prepared for one of {}",
                   path.string(), *largest, options.vocabulary_size, made.vocabulary_size));
}

void write_sample_lines(const std::filesystem::path& path, const SampleSet& set) {
  StagedFile file(path);
  std::string text;
  for (std::size_t i = 0; i < set.size(); ++i) {
    fmt::format_to(std::back_inserter(text), "{{\"line\": {}, \"input_ids\": [{}]", set.lines[i],
                   fmt::join(set.sample(i), ", "));
    if (!set.supervised.empty()) {
      std::vector<std::int64_t> labels(set.sample(i).begin(), set.sample(i).end());
      for (std::size_t j = 0; j < labels.size(); ++j) {
        if (!set.is_supervised(set.starts[i] + j)) labels[j] = no_label;
      }
      fmt::format_to(std::back_inserter(text), ", \"labels\": [{}]", fmt::join(labels, ", "));
    }
    text += "}\n";
    if (text.size() < written_at_once) continue;
    file.write(text);
    text.clear();
  }
  file.write(text);
  file.commit();
}

}  // namespace mylos::data
