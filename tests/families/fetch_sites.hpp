#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "data/huggingface/fetch.hpp"
#include "families/model_families.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::tests {

/// A cache, a hub and a SQuAD site for tests below one directory.
class FetchSites : public ::testing::Test {
 protected:
  TemporaryDirectory root_;
  EnvironmentVariable cache_{"XDG_CACHE_HOME", (root_ / "cache").string()};
  EnvironmentVariable hub_{"HF_ENDPOINT", "file://" + (root_ / "hub").string()};
  EnvironmentVariable site_{"MYLOS_SQUAD_URL", "file://" + (root_ / "squad").string()};
  EnvironmentVariable cifar_{"MYLOS_CIFAR_URL", "file://" + (root_ / "cifar").string()};
  EnvironmentVariable index_{"PIP_NO_INDEX", "1"};
  EnvironmentVariable links_{"PIP_FIND_LINKS", (root_ / "wheels").string()};
  std::vector<std::string> lines_;
  data::FetchLog log_ = [this](const std::string& line) { lines_.push_back(line); };

  std::string fetch_error(const std::string& name) {
    return error_of([&] { data::fetch(name, log_, families::find_model_family); });
  }

  std::filesystem::path hub_files(const std::string& name) { return root_ / ("hub/" + name + "/resolve/main"); }

  /// Expects only complete entries in the cache.
  void expect_nothing_partial() {
    if (!std::filesystem::exists(root_ / "cache")) return;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root_ / "cache")) {
      EXPECT_EQ(entry.path().string().find("partial"), std::string::npos) << entry.path();
    }
  }
};

}  // namespace mylos::tests
