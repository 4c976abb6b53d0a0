#include "tests/small_models/rank_jobs.hpp"

#include "tests/small_models/image_task.hpp"
#include "tests/small_models/span_task.hpp"
#include "tests/small_models/text_task.hpp"

namespace mylos::small_models {

std::vector<Job> uneven_jobs(const train::TrainConfig& common) {
  train::TrainConfig bert = common;
  bert.learning_rate = 2e-4;
  bert.optimizer.weight_decay = 0.01;

  train::TrainConfig resnet = common;
  resnet.learning_rate = 0.05;
  resnet.optimizer.name = "sgd";

  train::TrainConfig llama = common;
  llama.learning_rate = 2e-4;

  SpanTaskConfig frozen = uneven_spans();
  frozen.freeze = {"embeddings", "layers.0", "*output.dense*"};

  return {{"BERT", [] { return std::make_unique<SpanTask>(uneven_spans()); }, bert, 2},
          {"ResNet", [] { return std::make_unique<ImageTask>(); }, resnet, 1},
          {"Llama", [] { return std::make_unique<TextTask>(); }, llama, 3},
          {"frozen BERT", [=] { return std::make_unique<SpanTask>(frozen); }, bert, 2}};
}

Job windowed_job(const train::TrainConfig& common) {
  train::TrainConfig config = common;
  config.learning_rate = 2e-4;
  return {"windowed Llama", [] { return std::make_unique<TextTask>(TextTaskConfig{}, windowed_llama()); }, config, 3};
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
