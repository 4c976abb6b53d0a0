#include "data/tokenizer/token_trie.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace mylos::data {
namespace {

TEST(TokenTrie, FindsTheLongestMatch) {
  const std::vector<std::string> tokens = {"a", "ab", "abcd", "b", "##c", "##cd"};
  const TokenTrie trie(tokens);
  const auto match = [&](std::string_view text) { return trie.longest_match(TokenTrie::root, text, 0); };
  EXPECT_EQ(match("abce").id, 1);
  EXPECT_EQ(match("abce").end, 2U);
  EXPECT_EQ(match("abcde").id, 2);
  EXPECT_EQ(match("x").id, -1);
  EXPECT_EQ(match("").id, -1);
  const auto continued = trie.longest_match(trie.find_node("##"), "abcdx", 2);
  EXPECT_EQ(continued.id, 5);
  EXPECT_EQ(continued.end, 4U);
  EXPECT_EQ(trie.find_node("#x"), TokenTrie::no_node);
}

TEST(TokenTrie, FindsExactlyWhatWasStored) {
  // Many tokens over all byte values, so that nodes must be relocated and the table must grow.
  std::vector<std::string> tokens;
  std::map<std::string, std::int32_t> ids;
  unsigned state = 1;
  while (tokens.size() < 20000) {
    std::string token;
    do {
      state = state * 1664525U + 1013904223U;
      token.push_back(static_cast<char>(state >> 24U));
    } while ((state >> 16U) % 5 != 0);
    if (ids.emplace(token, static_cast<std::int32_t>(tokens.size())).second) tokens.push_back(token);
  }
  const TokenTrie trie(tokens);
  for (const auto& [token, id] : ids) {
    ASSERT_EQ(trie.find(token), id);
    const std::string longer = token + "\x01";
    const auto found = ids.find(longer);
    ASSERT_EQ(trie.find(longer), found == ids.end() ? -1 : found->second);
  }
  EXPECT_EQ(trie.find(""), -1);
}

TEST(TokenTrie, AnEmptyTrieFindsNothing) {
  const TokenTrie trie({});
  EXPECT_EQ(trie.find("a"), -1);
  EXPECT_EQ(trie.longest_match(TokenTrie::root, "a", 0).id, -1);
}

}  // namespace
}  // namespace mylos::data
