#include "tests/small_models/rank_jobs.hpp"

#include "tests/small_models/image_task.hpp"
#include "tests/small_models/span_task.hpp"
#include "tests/small_models/text_task.hpp"

namespace mylos::small_models {

std::vector<Job> uneven_jobs(const train::TrainConfig& common) {
  train::TrainConfig bert = common;
  bert.learning_rate = 2e-4;
  bert.optimizer.adamw.weight_decay = 0.01;

  ImageTaskConfig images{.groups = 15, .images_per_group = 4, .groups_per_batch = 5, .evaluation_images = 120};
  images.shape = {.image = {8, 8}, .first_channels = 4, .second_channels = 8};
  train::TrainConfig convolution = common;
  convolution.learning_rate = 0.005;
  convolution.optimizer.kind = train::OptimizerKind::sgd;

  TextTaskConfig text{.sentences = 60, .batch = 9, .evaluation_sentences = 70};
  train::TrainConfig decoder = common;
  decoder.learning_rate = 2e-4;

  SpanTaskConfig frozen = uneven_spans();
  frozen.freeze = {"embeddings", "layers.0", "*output.dense*"};

  return {{"BERT", [] { return std::make_unique<SpanTask>(uneven_spans()); }, bert, 2},
          {"convolution", [=] { return std::make_unique<ImageTask>(images); }, convolution, 1},
          {"decoder", [=] { return std::make_unique<TextTask>(text); }, decoder, 3},
          {"frozen BERT", [=] { return std::make_unique<SpanTask>(frozen); }, bert, 2}};
}

Job half_job(const train::TrainConfig& common) {
  Job job = uneven_jobs(common).front();
  job.name = "BERT in half";
  job.make = [] { return std::make_unique<SpanTask>(uneven_spans(Precision::float16)); };
  job.config.precision = Precision::float16;
  job.config.initial_loss_scale = train::LossScale::largest / 16;
  return job;
}

}  // namespace mylos::small_models
