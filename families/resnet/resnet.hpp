#pragma once

#include "families/resnet/resnet_body.hpp"

namespace mylos::families {

/// Returns a ResNet that gives (T, labels) logits, with softmax cross entropy. A sample's loss is the sum over its
/// images. Errors: those of make_resnet_body.
std::unique_ptr<nn::Model> make_resnet(const ResnetShape& shape, Precision precision);

}  // namespace mylos::families
