#pragma once

#include "train/engine/report.hpp"

#include <vector>

namespace mylos::tests {

/// Keeps what a run tells of its steps.
class StepRecorder final : public train::Reporter {
 public:
  void step(const train::StepReport& report) override { steps.push_back(report); }
  std::vector<train::StepReport> steps;
};

}  // namespace mylos::tests
