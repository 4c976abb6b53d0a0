#pragma once

#include "core/work.hpp"

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

}  // namespace mylos::tests
