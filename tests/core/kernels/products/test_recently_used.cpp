#include "core/kernels/products/recently_used.hpp"

#include <gtest/gtest.h>

#include <string>

namespace mylos {
namespace {

TEST(RecentlyUsed, KeepsWhatWasUsedLast) {
  RecentlyUsed<int, std::string> kept(2);
  int made = 0;
  const auto get = [&](int key) -> std::string& {
    return kept.get(key, [&] { return std::to_string(key) + " made " + std::to_string(++made); });
  };
  EXPECT_EQ(get(1), "1 made 1");
  EXPECT_EQ(get(2), "2 made 2");
  EXPECT_EQ(get(1), "1 made 1");
  EXPECT_EQ(get(3), "3 made 3");
  EXPECT_EQ(kept.size(), 2u);
  EXPECT_EQ(get(1), "1 made 1") << "used after 2";
  EXPECT_EQ(get(2), "2 made 4");
  EXPECT_EQ(get(3), "3 made 5") << "1 was used after it";
  EXPECT_EQ(kept.size(), kept.most());
}

}  // namespace
}  // namespace mylos
