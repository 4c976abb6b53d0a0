#include "app/options/tool_options.hpp"
#include "app/run_commands.hpp"
#include "core/base/error.hpp"
#include "core/base/files/json.hpp"
#include "core/base/options/option_values.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/base/text/unicode.hpp"
#include "core/base/usage_error.hpp"
#include "data/text/chat_format.hpp"
#include "data/text/tokenize_documents.hpp"
#include "data/tokenizer/tokenizer.hpp"
#include "families/model_directory.hpp"
#include "families/model_families.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <functional>
#include <iostream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

/// mylos tokenize: reads lines and prints one JSON value per line, or reads ids and prints text.
namespace mylos::app {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson with_offsets(const data::Tokens& tokens, const data::Tokenizer& tokenizer) {
  OrderedJson words = OrderedJson::array(), offsets = OrderedJson::array();
  for (std::size_t i = 0; i < tokens.ids.size(); ++i) {
    words.push_back(tokenizer.token(tokens.ids[i]));
    offsets.push_back(OrderedJson::array({tokens.offsets[i].begin, tokens.offsets[i].end}));
  }
  return {{"tokens", words}, {"ids", tokens.ids}, {"offsets", offsets}};
}

/// Calls `action` with each line of standard input and the name that errors use for it.
void for_each_line(const std::function<void(const std::string& line, const std::string& name)>& action) {
  std::string line;
  for (std::size_t number = 1; std::getline(std::cin, line); ++number) {
    const std::string name = fmt::format("standard input, line {}", number);
    ensure_utf8(line, name);
    action(line, name);
  }
  ensure(!std::cin.bad(), "cannot read standard input");
}

constexpr auto largest_id = static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max());

std::int32_t id_of(std::string_view word, const std::string& name) {
  const auto id = parse_count(word, {0, largest_id});
  ensure(id.has_value(),
         fmt::format("{}: \"{}\" is not a token id; write ids as a JSON list or separated by spaces", name, word));
  return static_cast<std::int32_t>(*id);
}

/// Parses "[1, 403]" or "1 403".
std::vector<std::int32_t> ids_of(const std::string& line, const std::string& name) {
  std::vector<std::int32_t> ids;
  if (line.find('[') != std::string::npos) {
    const JsonLocation location(name);
    const Json list = parse_json(line, name);
    for (const Json& id : as_list(list, location)) ids.push_back(id_of(id.dump(), name));
    return ids;
  }
  std::istringstream words(line);
  for (std::string word; words >> word;) ids.push_back(id_of(word, name));
  return ids;
}

/// Prints the ids of each line, with their names and places if `shows_offsets`.
void print_ids(const data::Tokenizer& tokenizer, bool shows_offsets) {
  for_each_line([&](const std::string& line, const std::string&) {
    const OrderedJson shown =
        shows_offsets ? with_offsets(tokenizer.tokenize(line), tokenizer) : OrderedJson(tokenizer.encode(line));
    print_json_text(shown.dump() + "\n");
  });
}

void print_texts(const data::Tokenizer& tokenizer) {
  for_each_line([&](const std::string& line, const std::string& name) {
    const std::vector<std::int32_t> ids = ids_of(line, name);
    std::string text;
    try {
      text = tokenizer.decode_all(ids);
    } catch (const UsageError&) {
      throw;
    } catch (const std::runtime_error& error) {
      fail(fmt::format("{}: {}", name, error.what()));
    }
    print_result_text(text + "\n");
  });
}

/// Prints the text, the ids and the mask of each conversation.
void tokenize_chats(const data::Tokenizer& tokenizer, const std::filesystem::path& directory) {
  const data::ChatFormat chat(directory);
  for_each_line([&](const std::string& line, const std::string& name) {
    const auto [text, parts] = chat.conversation(parse_ordered_json(line, name), data::LossOn::assistant, name);
    const auto [ids, mask] = data::supervised_tokens(tokenizer, text, parts);
    const OrderedJson shown = {{"text", text}, {"ids", ids}, {"mask", mask}};
    print_json_text(shown.dump() + "\n");
  });
}

/// Returns the directory of --model, which may hold the files of a tokenizer alone.
std::filesystem::path tokenizer_directory(const std::string& model) {
  return families::holds_only_tokenizer(model) ? std::filesystem::path(model)
                                               : families::resolve_model(FileReader(), model);
}

}  // namespace

int run_tokenize(const Arguments& arguments) {
  const TokenizeArguments& given = *arguments.tokenize;
  if (arguments.model.empty()) {
    print_ids(*families::read_vocabulary(given.vocabulary, !given.cased), given.offsets);
    return 0;
  }
  const std::filesystem::path directory = tokenizer_directory(arguments.model);
  const auto tokenizer = families::read_tokenizer(FileReader(), directory);
  families::notice_tokenizer_choice(FileReader(), directory, log_line);
  if (arguments.chat) {
    tokenize_chats(*tokenizer, directory);
  } else if (given.decode) {
    print_texts(*tokenizer);
  } else {
    print_ids(*tokenizer, given.offsets);
  }
  return 0;
}

}  // namespace mylos::app
