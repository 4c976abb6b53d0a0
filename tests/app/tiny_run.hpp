#pragma once

#include "tests/app/tiny_model.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace mylos::tests {

/// A tiny model and questions for it in files, and the name of a directory for a run.
class TinyRun : public testing::Test {
 protected:
  void SetUp() override {
    write_tiny_model(model_);
    write_file(train_, tiny_questions());
  }

  TemporaryDirectory directory_;
  std::filesystem::path model_ = directory_ / "model", train_ = directory_ / "train.json", run_ = directory_ / "run";
  EnvironmentVariable cache_{"XDG_CACHE_HOME", (directory_ / "cache").string()};  ///< of timings, not the user's
};

}  // namespace mylos::tests
