#include "data/text/tokenize_documents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/process/processors.hpp"

namespace mylos::data {
namespace {

constexpr std::size_t documents_at_once = 16;  // taken by a thread

/// Documents that several threads tokenize.
class SharedDocuments {
 public:
  SharedDocuments(std::span<Document> documents, const Tokenizer& tokenizer)
      : documents_(documents), tokenizer_(tokenizer) {}

  /// Tokenizes documents until none are left. Stores errors.
  void work() noexcept {
    while (true) {
      const std::size_t begin = next_.fetch_add(documents_at_once);
      if (begin >= documents_.size()) return;
      const std::size_t end = std::min(begin + documents_at_once, documents_.size());
      for (std::size_t i = begin; i < end; ++i) tokenize(i);
    }
  }

  /// The first document with an error, and its message.
  struct Failure {
    std::size_t document;
    std::exception_ptr error;
  };
  const std::optional<Failure>& failure() const { return failure_; }

 private:
  void tokenize(std::size_t index) noexcept {
    Document& document = documents_[index];
    try {
      if (document.has_ids) return;
      if (!document.supervised_text) {
        document.ids = tokenizer_.encode(document.text);
        return;
      }
      auto tokens = supervised_tokens(tokenizer_, document.text, *document.supervised_text);
      document.ids = std::move(tokens.ids);
      document.supervised = std::move(tokens.supervised);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_ || index < failure_->document) failure_ = Failure{index, std::current_exception()};
    }
  }

  std::span<Document> documents_;
  const Tokenizer& tokenizer_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
  std::optional<Failure> failure_;
};

std::size_t threads_for(std::size_t documents, std::size_t threads) {
  const std::size_t wanted = threads > 0 ? threads : std::max<std::size_t>(1, allowed_processors().count());
  return std::min(wanted, (documents + documents_at_once - 1) / documents_at_once);
}

[[noreturn]] void fail_document(const std::filesystem::path& path, std::size_t line, std::string_view problem) {
  fail(fmt::format("{}, line {}: {}", path.string(), line, problem));
}

}  // namespace

SupervisedTokens supervised_tokens(const Tokenizer& tokenizer, std::string_view text,
                                   std::span<const CodePointRange> parts) {
  Tokens tokens = tokenizer.tokenize_untrimmed(text);
  SupervisedTokens result{std::move(tokens.ids), {}};
  for (const CodePointRange& token : tokens.offsets) {
    const auto holds = [&](const CodePointRange& part) {
      return std::max(token.begin, part.begin) < std::min(token.end, part.end);
    };
    result.supervised.push_back(std::ranges::any_of(parts, holds) ? 1 : 0);
  }
  return result;
}

void tokenize_documents(std::span<Document> documents, const std::filesystem::path& path, const Tokenizer* tokenizer,
                        std::size_t threads) {
  if (tokenizer == nullptr) {
    const auto text = std::ranges::find(documents, false, &Document::has_ids);
    if (text == documents.end()) return;
    fail_document(path, text->line, "text, but the model's directory has no tokenizer; give ids as input_ids instead");
  }
  SharedDocuments shared(documents, *tokenizer);
  std::vector<std::thread> others;
  try {
    for (std::size_t i = 1; i < threads_for(documents.size(), threads); ++i) {
      others.emplace_back([&shared] { shared.work(); });
    }
  } catch (const std::system_error&) {  // thread limit reached: continue with the existing threads
  }
  shared.work();
  for (std::thread& thread : others) thread.join();
  if (!shared.failure()) return;
  try {
    std::rethrow_exception(shared.failure()->error);
  } catch (const std::runtime_error& error) {
    fail_document(path, documents[shared.failure()->document].line, error.what());
  }
}

}  // namespace mylos::data
