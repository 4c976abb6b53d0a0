#pragma once

namespace mylos::nn {

struct AdamWConfig {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;  ///< for tensors whose group has decay
  bool decay_all = false;     ///< applies weight decay to every trainable tensor, regardless of its group
};

struct SgdConfig {
  double momentum = 0.9;
  double weight_decay = 0.0;  ///< added to the gradient, for tensors whose group has decay
  bool nesterov = false;
  bool decay_all = false;  ///< applies weight decay to every trainable tensor, regardless of its group
};

}  // namespace mylos::nn
