#include "families/resnet/resnet.hpp"

#include "core/element_type.hpp"
#include "nn/heads/class_head.hpp"
#include "nn/network.hpp"

#include <cmath>

namespace mylos::families {

std::unique_ptr<nn::Model> make_resnet(const ResnetShape& shape, Precision precision) {
  return with_type(precision, [&]<class T>(T) {
    auto body = make_resnet_body<T>(shape);
    const float range = 1.0f / std::sqrt(static_cast<float>(body->width()));
    return nn::make_network<T>(std::move(body),
                               nn::make_class_head<T>("classifier.1", shape.labels, range, shape.label_smoothing));
  });
}

}  // namespace mylos::families
