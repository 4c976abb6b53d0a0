#include "data/tokenizer/sentencepiece.hpp"

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <utility>

#include "core/base/crc32c.hpp"
#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/text/unicode.hpp"

/// The library exports this function, but no header declares it. Weak, so that releases without it can be linked.
namespace sentencepiece::logging {
__attribute__((weak)) void SetMinLogLevel(int level);  // NOLINT(readability-identifier-naming): the library's name
}

namespace mylos::data {
namespace {

constexpr int no_messages = 4;  // above the library's LOG_FATAL, 3

/// The fields of ModelProto (sentencepiece_model.proto) that every model has.
enum ModelField : std::uint64_t { pieces_field = 1, trainer_field = 2, normalizer_field = 3 };
constexpr std::uint64_t last_known_field = 5;
constexpr std::uint64_t length_delimited = 2;  // protobuf's wire type

[[noreturn]] void fail_model(const std::filesystem::path& path, std::string_view why) {
  fail(fmt::format("{}: not a SentencePiece model: {}", path.string(), why));
}

/// Reads a protobuf varint and advances past it. nullopt if the bytes end within it or it exceeds 64 bits.
std::optional<std::uint64_t> take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if ((byte & 0x80U) == 0) return value;
  }
  return std::nullopt;
}

/// Checks the outermost fields before the library reads them. A file truncated between two fields is valid protobuf,
/// and the library would accept it as a smaller model with other settings.
void check_fields(std::string_view bytes, const std::filesystem::path& path) {
  if (bytes.empty()) fail_model(path, "the file is empty");
  bool has_field[last_known_field + 1] = {};
  while (!bytes.empty()) {
    const auto tag = take_varint(bytes);
    const auto field = tag.value_or(0) >> 3U;
    const bool is_message = tag.has_value() && (*tag & 7U) == length_delimited;
    if (field < 1 || field > last_known_field || !is_message) {
      if (!has_field[pieces_field]) fail_model(path, "it does not begin with a list of pieces");
      fail(fmt::format("{}: the SentencePiece model is damaged or cut short", path.string()));
    }
    const auto length = take_varint(bytes);
    if (!length || *length > bytes.size()) {
      if (!has_field[pieces_field]) fail_model(path, "it does not begin with a list of pieces");
      fail(fmt::format("{}: the SentencePiece model is cut short", path.string()));
    }
    has_field[field] = true;
    bytes.remove_prefix(*length);
  }
  if (!has_field[pieces_field]) fail_model(path, "it has no pieces");
  if (!has_field[trainer_field] || !has_field[normalizer_field]) {
    fail(fmt::format("{}: the SentencePiece model is cut short: its settings are missing", path.string()));
  }
}

/// Returns the library's error message, unless it only names a line of its own source.
std::string explain(std::string_view message) {
  const bool names_source = message.find(".cc(") != std::string_view::npos;
  return names_source || message.empty() ? "its contents are damaged" : printable(message);
}

std::optional<TokenId> id_or_none(int id) { return id < 0 ? std::nullopt : std::optional<TokenId>(id); }

}  // namespace

struct SentencePieceTokenizer::Model {
  sentencepiece::SentencePieceProcessor processor;
};

SentencePieceTokenizer SentencePieceTokenizer::load(const FileReader& files, const std::filesystem::path& path) {
  if (sentencepiece::logging::SetMinLogLevel != nullptr) sentencepiece::logging::SetMinLogLevel(no_messages);
  const std::string bytes = files.read_text(path);
  check_fields(bytes, path);
  auto model = std::make_unique<Model>();
  const auto status = model->processor.LoadFromSerializedProto(bytes);
  if (!status.ok()) fail_model(path, explain(status.message()));
  const int pieces = model->processor.GetPieceSize();
  if (pieces < 1) fail_model(path, "it has no pieces");
  return {std::move(model), {static_cast<std::size_t>(pieces), crc32c(std::as_bytes(std::span(bytes)))}};
}

SentencePieceTokenizer::SentencePieceTokenizer(std::unique_ptr<Model> model, TokenizerIdentity identity)
    : model_(std::move(model)), identity_(identity) {}
SentencePieceTokenizer::SentencePieceTokenizer(SentencePieceTokenizer&&) noexcept = default;
SentencePieceTokenizer& SentencePieceTokenizer::operator=(SentencePieceTokenizer&&) noexcept = default;
SentencePieceTokenizer::~SentencePieceTokenizer() = default;

void SentencePieceTokenizer::tokenize(std::string_view text, Tokens& tokens) const {
  ensure_utf8(text, "the text to tokenize");
  sentencepiece::ImmutableSentencePieceText pieces;
  const auto status = model_->processor.Encode(text, pieces.mutable_proto());
  if (!status.ok()) fail(fmt::format("the text cannot be tokenized: {}", printable(status.message())));
  // Pieces are in order and give bytes. Several bytes of one character have its range.
  std::size_t byte = 0;
  unsigned code_point = 0;
  const auto code_points_before = [&](std::size_t end) {
    for (; byte < end; ++byte) code_point += is_continuation(text[byte]) ? 0 : 1;
    return code_point;
  };
  for (const auto& piece : pieces.pieces()) {
    const unsigned begin = code_points_before(piece.begin());
    tokens.ids.push_back(static_cast<TokenId>(piece.id()));
    tokens.offsets.push_back({begin, code_points_before(piece.end())});
  }
}

std::vector<TokenId> SentencePieceTokenizer::encode(std::string_view text) const {
  ensure_utf8(text, "the text to tokenize");
  std::vector<TokenId> ids;
  const auto status = model_->processor.Encode(text, &ids);
  if (!status.ok()) fail(fmt::format("the text cannot be tokenized: {}", printable(status.message())));
  return ids;
}

std::string SentencePieceTokenizer::decode(std::span<const TokenId> ids) const {
  for (const TokenId id : ids) check_id(id);
  std::string text;
  const auto status = model_->processor.Decode(std::vector<int>(ids.begin(), ids.end()), &text);
  if (!status.ok()) fail(fmt::format("the ids cannot be decoded: {}", printable(status.message())));
  return text;
}

bool SentencePieceTokenizer::continues_word(TokenId id) const {
  constexpr std::string_view begins_word = "\xE2\x96\x81";  // U+2581
  return !token(id).starts_with(begins_word);
}

std::string SentencePieceTokenizer::token(TokenId id) const {
  check_id(id);
  return model_->processor.IdToPiece(id);
}

std::string SentencePieceTokenizer::bytes(TokenId id) const {
  constexpr std::size_t digits_begin = 3;  // <0x0A>
  check_id(id);
  if (!model_->processor.IsByte(id)) return "";
  return {static_cast<char>(std::stoul(model_->processor.IdToPiece(id).substr(digits_begin, 2), nullptr, 16))};
}

std::optional<TokenId> SentencePieceTokenizer::special(SpecialToken role) const {
  switch (role) {
    case SpecialToken::first:
      return id_or_none(model_->processor.bos_id());
    case SpecialToken::end:
      return id_or_none(model_->processor.eos_id());
    case SpecialToken::padding:
      return id_or_none(model_->processor.pad_id());
    case SpecialToken::unknown:
      return id_or_none(model_->processor.unk_id());
    case SpecialToken::separator:
    case SpecialToken::mask:
      break;
  }
  return std::nullopt;
}

void SentencePieceTokenizer::check_id(TokenId id) const {
  if (id >= 0 && static_cast<std::size_t>(id) < size()) return;
  fail(fmt::format("id {} is outside the tokenizer's {} pieces", id, size()));
}

}  // namespace mylos::data
