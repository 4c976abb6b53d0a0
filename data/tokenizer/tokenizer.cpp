#include "data/tokenizer/tokenizer.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "core/base/setting_error.hpp"
#include "core/base/usage_error.hpp"

namespace mylos::data {
namespace {

std::string_view name_of(SpecialToken role) {
  switch (role) {
    case SpecialToken::first:
      return "first";
    case SpecialToken::separator:
      return "separator";
    case SpecialToken::padding:
      return "padding";
    case SpecialToken::mask:
      return "mask";
    case SpecialToken::unknown:
      return "unknown";
    case SpecialToken::end:
      break;
  }
  return "end";
}

}  // namespace

std::string identity_text(const TokenizerIdentity& identity) {
  return fmt::format("a tokenizer of {} tokens (CRC32C {:08x})", identity.size, identity.checksum);
}

Tokens Tokenizer::tokenize(std::string_view text) const {
  Tokens tokens;
  tokenize(text, tokens);
  return tokens;
}

std::string Tokenizer::decode(std::span<const TokenId>) const {
  throw UsageError(setting("decode") + ": the tokenizer of this model does not turn ids into text; leave it out");
}

PairLayout Tokenizer::pair_layout() const {
  return {.first = require_special(*this, SpecialToken::first),
          .separator = require_special(*this, SpecialToken::separator)};
}

TokenId require_special(const Tokenizer& tokenizer, SpecialToken role) {
  const std::optional<TokenId> id = tokenizer.special(role);
  ensure(id.has_value(), fmt::format("the model's tokenizer has no {} token", name_of(role)));
  return *id;
}

}  // namespace mylos::data
