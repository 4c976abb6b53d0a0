#pragma once

#include "train/engine/report.hpp"

#include <vector>

namespace mylos::tests {

/// Stores the step reports of a run.
class StepRecorder final : public train::Reporter {
 public:
  void step(const train::StepReport& report) override { steps.push_back(report); }
  std::vector<train::StepReport> steps;
};

}  // namespace mylos::tests
