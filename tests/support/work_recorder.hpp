#pragma once

#include "core/work.hpp"
#include "tests/support/tool_callbacks.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace mylos::tests {

/// Sums the work that kernels report during its lifetime. Only one at a time.
class WorkRecorder : private WorkListener {
 public:
  WorkRecorder() { set_work_listener(this); }
  ~WorkRecorder() { set_work_listener(nullptr); }
  WorkRecorder(const WorkRecorder&) = delete;
  WorkRecorder& operator=(const WorkRecorder&) = delete;

  /// Returns the work by label.
  const std::map<std::string, Work>& work() const { return work_; }
  /// Returns the number of reports with a label.
  std::size_t calls(const std::string& label) const {
    const auto found = calls_.find(label);
    return found == calls_.end() ? 0 : found->second;
  }

 private:
  void launching(const char* label, const Work& work) override {
    work_[label] += work;
    ++calls_[label];
  }

  std::map<std::string, Work> work_;
  std::map<std::string, std::size_t> calls_;
};

/// Expects that launches are labelled as ours, and that each of our kernels has reported its work.
inline void expect_reported_launches(const KokkosRecorder& launched, const WorkRecorder& reported) {
  EXPECT_EQ(launched.foreign_launches(), std::vector<std::string>());
  std::map<std::string, std::size_t> launches;
  for (const std::string& label : launched.launches()) {
    if (label.starts_with("mylos::") && label != "mylos::reserve_scratch") ++launches[label];  // that one does nothing
  }
  EXPECT_FALSE(launches.empty());
  for (const auto& [label, count] : launches) EXPECT_EQ(reported.calls(label), count) << label;
}

}  // namespace mylos::tests
