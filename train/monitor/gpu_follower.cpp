#include "train/monitor/gpu_follower.hpp"

namespace mylos::train {
namespace {

void take_sample(GpuFollower::Gpus& gpus, const std::string& node, const GpuSample& sample) {
  for (const GpuReading& reading : sample.gpus) {
    GpuFollower::Gpu& gpu = gpus[{node, reading.index}];
    gpu.last = reading;
    gpu.time = sample.time;
    if (reading.energy) gpu.energy.add(*reading.energy);
    gpu.utilization.add(reading.utilization);
    gpu.memory.add(reading.memory);
    gpu.power.add(reading.power);
  }
}

}  // namespace

void GpuFollower::update() {
  if (reader_.begins_anew()) gpus_.clear();
  for (auto& [location, gpu] : gpus_) gpu.utilization = gpu.memory = gpu.power = {};
  reader_.read([this](const std::string& node, const GpuSample& sample) { take_sample(gpus_, node, sample); });
}

std::optional<double> GpuFollower::joules() const {
  double sum = 0.0;
  bool configured = false;
  for (const auto& [location, gpu] : gpus_) {
    sum += gpu.energy.joules();
    configured = configured || gpu.last.energy.has_value();
  }
  return configured ? std::optional(sum) : std::nullopt;
}

}  // namespace mylos::train
