#pragma once

#include "core/kernels/gemm_label.hpp"
#include "data/huggingface/bert_config.hpp"

#include <cstddef>
#include <optional>
#include <string_view>

/// How many floating-point operations the kernels of a training step of BERT do and how many bytes they must move, by
/// formula. An exponential and an error function count as the polynomials that core/kernels/math.hpp computes; integer
/// work (random numbers for dropout) does not count. Bytes are those of the arrays, each element once however often it
/// is used, so that no kernel can move fewer from memory; what stands in a cache comes faster than memory gives it.
namespace mylos::app {

struct Work {
  double flops = 0.0;
  double bytes = 0.0;
};

/// What the work of a step's kernels depends on, besides the model.
struct StepShape {
  double micro_batches = 1.0;    ///< in which the step is computed
  double tokens = 0.0;           ///< T
  double squared_lengths = 0.0;  ///< of the sequences, summed: attention's scores of one head
  double distinct_tokens = 0.0, distinct_positions = 0.0, distinct_segments = 0.0;
  double parameters = 0.0;  ///< all of them are trained
  Precision precision = Precision::float32;
};

/// The work of all `calls` of the kernel `label` in a step, outside of products. Nothing where the label is not known.
std::optional<Work> kernel_work(std::string_view label, double calls, const data::BertConfig& model,
                                const StepShape& shape);

/// The work of the kernels `label` within one product: epilogues and conversions.
std::optional<Work> kernel_work_within(const GemmLabel& product, std::string_view label);

/// The work of a product itself.
Work product_work(const GemmLabel& product);

}  // namespace mylos::app
