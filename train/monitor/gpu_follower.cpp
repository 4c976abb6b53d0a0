#include "train/monitor/gpu_follower.hpp"

namespace mylos::train {

void GpuFollower::update() {
  if (reader_.begins_anew()) {
    gpus_.clear();
    nodes_.clear();
  }
  for (auto& [location, gpu] : gpus_) gpu.recent = {};
  for (auto& [name, node] : nodes_) node.recent = {};
  reader_.read([this](const std::string& node, const GpuSample& sample) {
    if (sample.node) nodes_[node].add(*sample.node, sample.time);
    for (const GpuReading& reading : sample.gpus) {
      Gpu& gpu = gpus_[{node, reading.index}];
      gpu.add(reading, sample.time);
      if (reading.energy) gpu.energy.add(*reading.energy);
    }
  });
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
