#include "train/monitor/run_files.hpp"

#include <gtest/gtest.h>

namespace mylos::train {
namespace {

// Users may name copies NAME.partial-old, and clearing a directory removes a run's files.
TEST(RunFileNames, ThoseThatWritersGiveAreARuns) {
  for (const char* ours :
       {"run.json", "run.json.partial-0badcafe", "best", "best.partial-0badcafe", "best.replaced-0badcafe",
        "metrics.jsonl", "events.out.tfevents.1.host.2", ".lock", ".probe"}) {
    EXPECT_TRUE(is_run_file(ours)) << ours;
  }
  for (const char* others : {"best.partial-old", "metrics.jsonl.partial-0badcafe.bak", "run.json.partial-0BADCAFE",
                             "thesis.partial-0badcafe", "thesis.tex"}) {
    EXPECT_FALSE(is_run_file(others)) << others;
    EXPECT_FALSE(is_scaffolding(others)) << others;
  }
  EXPECT_TRUE(is_scaffolding("run.json.partial-0badcafe"));
  EXPECT_FALSE(is_scaffolding("run.json"));
}

}  // namespace
}  // namespace mylos::train
