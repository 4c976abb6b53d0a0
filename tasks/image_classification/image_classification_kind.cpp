#include "tasks/image_classification/image_classification_kind.hpp"

#include "core/base/text/quantities.hpp"
#include "core/base/usage_error.hpp"
#include "data/huggingface/label_names.hpp"
#include "data/images/cifar_images.hpp"
#include "data/images/idx_images.hpp"
#include "data/images/image_file.hpp"
#include "data/images/image_set.hpp"
#include "data/images/prepare_images.hpp"
#include "data/images/synthetic_images.hpp"
#include "families/model_directory.hpp"
#include "families/model_families.hpp"
#include "tasks/image_classification/group_stream.hpp"
#include "tasks/image_classification/image_config.hpp"
#include "tasks/image_classification/image_data.hpp"
#include "tasks/image_classification/image_labels.hpp"
#include "tasks/image_classification/image_task.hpp"
#include "tasks/interface/planned_run.hpp"
#include "tasks/interface/trained_model.hpp"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <utility>

namespace mylos::tasks {
namespace {

bool has_parts(const std::filesystem::path& data) {
  return std::filesystem::is_directory(data) && (data::find_idx_files(data, data::ImagePart::test) ||
                                                 data::find_cifar_files(FileReader(), data, data::ImagePart::test));
}

/// Copies the readable pictures of the data set `data`, unchanged, into the HDF5 file `output`. `notice` gets the
/// counts. Errors: std::runtime_error naming the file, UsageError if the name of `output` does not end in .h5.
void prepare_image_file(const RunConfig& run, const std::filesystem::path& data, const std::filesystem::path& output,
                        const Notice& notice) {
  if (output.extension() != ".h5") {
    throw UsageError(
        fmt::format("--output {}: images are prepared as one file, whose name ends in .h5", output.string()));
  }
  const ImageConfig& config = image_config(run);
  if (config.part == data::ImagePart::test && !has_parts(data)) {
    throw UsageError(fmt::format(
        "--part test: {} has no test files as CIFAR's or MNIST's directories have; leave it out", data.string()));
  }
  std::unique_ptr<data::ImageSet> set = data::open_images(FileReader(), data.string(), config.part);
  note_passed_over(*set, data, notice);
  if (run.task.train_limit) set = data::first_images(std::move(set), *run.task.train_limit);
  const data::PrepareCounts counts =
      data::prepare_images(*set, output, {.strict = config.strict, .threads = config.loader_threads});
  if (counts.left_out > 0) {
    notice(
        fmt::format("{} left out, the first: {}", count_of(counts.left_out, "damaged picture"), counts.first_left_out));
  }
  if (!counts.emptied_labels.empty()) {
    constexpr std::size_t most = 10;
    notice(fmt::format("no readable picture of {}: kept in the file without images",
                       labels_text(counts.emptied_labels, most)));
  }
  notice(fmt::format("{}: {} of {}", output.string(), count_of(counts.images, "image"),
                     count_of(set->label_names().size(), "label")));
}

/// Number of images in plans without data: ImageNet's.
constexpr std::size_t imagenet_images = 1'281'167;

/// Returns the model's directory, or its name if it has built-in sizes, also under the name that its weights are
/// fetched by.
std::filesystem::path find_model(const std::string& name) {
  const data::KnownModel* known = families::find_known_model(name, families::BodyOutput::images);
  return known != nullptr ? std::filesystem::path(known->name) : families::resolve_model(FileReader(), name);
}

/// Plans a run of the model called `name` on the data set `data` or, if that is empty, on as many images as ImageNet
/// has. Errors: std::runtime_error if a file or directory does not exist, UsageError if a batch cannot be split over
/// the ranks.
PlannedRun plan_images(const std::string& name, const std::filesystem::path& data, const RunConfig& run,
                       const Notice& notice) {
  RunConfig config = run;
  config.task.model = find_model(name);
  PlannedRun planned{.config = config, .name = name, .model = name, .network = nullptr};
  if (!data.empty()) {
    config.task.train = data;
    const ImageTask task(FileReader(), config, notice);
    planned.samples = std::make_shared<GroupStream>(*task.stream());
    planned.network = make_network(task.classifier(), task.input(), run.engine.precision);
    planned.data = fmt::format("{}: {}", data.string(), task.train_text());
  } else {
    ImageConfig& images = image_config(config);
    ClassifierModel model = read_classifier(FileReader(), config.task.model);
    choose_stem(FileReader(), model, images.stem);
    if (images.labels > 0) model.images->labels = data::unnamed_labels(images.labels);
    const ImageInput input =
        resolve_input(images, model.processor, nullptr, model.images->channels, PreferredSize::model);
    const std::size_t group = group_size(images, run.task.batch);
    planned.samples = std::make_shared<GroupStream>(imagenet_images, run.task.batch, group, run.engine.seed);
    planned.network = make_network(model, input, run.engine.precision);
    planned.data = fmt::format("{}, as ImageNet has, of {} x {} pixels; --data DATA plans for these data",
                               count_of(imagenet_images, "image"), input.size, input.size);
    planned.data_options = "--train DATA";
  }
  planned.work = planned.samples->work();
  return planned;
}

constexpr std::string_view by_output = "use --output DIR: best/, last/, checkpoints/ and metrics.jsonl are in it";
/// Names in Derecho's examples and other programs.
constexpr std::array peers = {
    peer_alias("arch", "model"),
    peer_alias("num-epochs", "epochs"),
    peer_alias("batch-size", "batch-per-rank"),
    peer_alias("random-seed", "seed"),
    peer_alias("label-smoothing-factor", "label-smoothing"),
    peer_switch("use-fsdp", "mode", "sharded", "train plan"),
    peer_switch("use-fsdp", "modes", "sharded", "compare"),
    peer_switch("use-amp", "precision", "bfloat16", "train plan"),
    PeerOption{"backend", false, "", "", "use --communicator auto, mpi or nccl"},
    PeerOption{"model-dir", false, "", "", by_output},
    PeerOption{"model-filename", false, "", "", by_output},
    PeerOption{"logfile", false, "", "",
               "every step is in metrics.jsonl of --output, and `mylos compare` prints epoch times by number of GPUs"},
};

constexpr std::array programs = {
    Recipe{"ncar-ddp", "ResNets on CIFAR-10 or random images with DDP (main.py)",
           "--epochs 100 --batch-per-rank 256 --optimizer sgd --learning-rate 0.1 --momentum 0.9 --weight-decay 1e-5 "
           "--decay-all --schedule constant --clip 0 --augment crop-flip --eval-every 10epochs --batch-norm-group rank "
           "--mode replicated",
           ""},
    Recipe{"ncar-fsdp", "ResNet-18 for small images on CIFAR-10 with FSDP (resnet_fsdp_training.py)",
           "--epochs 10 --batch-per-rank 64 --optimizer sgd --learning-rate 0.01 --momentum 0.9 --weight-decay 5e-4 "
           "--decay-all --schedule constant --clip 0 --augment crop-flip --stem cifar --batch-norm-group rank "
           "--mode sharded",
           ""},
};

/// Resolves --use-syn: --steps-syn batches of images of --image-size, sized by the batch of all ranks.
void resolve_drawn_images(RunConfig& run) {
  ImageConfig& config = image_config(run);
  if (!config.use_syn) {
    if (config.steps_syn > 0) throw UsageError("--steps-syn needs --use-syn; give both or none");
    return;
  }
  if (config.steps_syn == 0) throw UsageError("--use-syn needs --steps-syn N: steps of an epoch");
  run.task.train = "synthetic:";
}

void draw_images(RunConfig& run) {
  const ImageConfig& config = image_config(run);
  if (!config.use_syn) return;
  const std::size_t side = config.image_size > 0 ? config.image_size : 224;
  run.task.train = fmt::format("synthetic:{}x{}x{}", config.steps_syn * run.task.batch, side, side);
}

constexpr TaskCommand own_commands[] = {{"classify", classify}};

TaskTraits image_classification_traits() {
  constexpr std::string_view data =
      "a directory with one directory per class or with the files of CIFAR or MNIST, synthetic:COUNTxHxW, or images.h5";
  return {.name = "image-classification",
          .title = "image classification",
          .data_texts = {data, data, "images"},
          .takes = families::BodyOutput::images,
          .architecture = "ForImageClassification",
          .trains_by_name = true,
          .options = image_options,
          .peer_options = peers,
          .recipes = programs,
          .metrics = {{"loss", {"eval_loss"}}, {"accuracy", {"eval_accuracy"}}},
          .commands = own_commands,
          .prepares_for_model = false,
          .prepare = prepare_image_file,
          .is_prepared = data::is_image_file,
          .report = report_mistakes};
}

class ImageClassificationKind final : public TaskKind {
 public:
  ImageClassificationKind() : TaskKind(image_classification_traits()) {}

  void set_defaults(RunConfig& run, std::string_view) const override {
    run.settings = ImageConfig();
    run.task.batch = 256;
    run.engine.optimizer.name = "sgd";
    run.engine.learning_rate = 0.1;
    run.engine.clip = 0.0;
  }
  void resolve(RunConfig& run, const OptionSources&, std::string_view command) const override {
    if (command == "train") resolve_drawn_images(run);
  }
  void check(const RunConfig& run) const override {
    if (run.task.dropout.value_or(0.0) != 0.0) {
      throw TaskError(fmt::format("--dropout {}: these models have no dropout; leave it out", *run.task.dropout));
    }
    if (run.task.attention.value_or(AttentionKernel::portable) != AttentionKernel::portable) {
      throw TaskError(
          fmt::format("--attention {}: these models have no attention; leave it out", to_string(*run.task.attention)));
    }
    if (run.engine.micro_tokens > 0) {
      throw TaskError(fmt::format("--micro-tokens {}: images have no tokens; use --micro-batch, in images",
                                  run.engine.micro_tokens));
    }
  }
  /// Errors: UsageError if a micro-batch is smaller than a group, or a full batch has fewer groups than there are
  /// ranks.
  void fit_ranks(RunConfig& run, std::size_t ranks) const override {
    draw_images(run);
    ImageConfig& config = image_config(run);
    if (config.batch_norm_group == batch_of_rank) {
      config.batch_norm_group = std::max<std::size_t>(run.task.batch / ranks, 1);
    }
    if (!config.order.empty()) return;  // determines the batches
    const std::size_t batch = run.task.batch, group = group_size(config, batch);
    const std::size_t groups = BatchGroups{batch, group}.count();
    if (groups < ranks) {
      throw UsageError(fmt::format(
          "--batch {} has {} of {} (--batch-norm-group), fewer than the {} ranks; use "
          "--batch-norm-group {}, a larger --batch, or fewer ranks",
          batch, count_of(groups, "group"), count_of(group, "image"), ranks, std::max<std::size_t>(1, batch / ranks)));
    }
    if (run.engine.micro_batch > 0 && run.engine.micro_batch < group) {
      throw UsageError(
          fmt::format("--micro-batch {}: micro-batches are whole groups of {} (--batch-norm-group); use at "
                      "least {}, or smaller groups",
                      run.engine.micro_batch, count_of(group, "image"), group));
    }
  }

  std::size_t micro_batch_step(const RunConfig& run) const override {
    return group_size(image_config(run), run.task.batch);
  }

  std::unique_ptr<Task> make(const FileReader& files, const RunConfig& run, const Notice& notice) const override {
    return std::make_unique<ImageTask>(files, run, notice);
  }
  ExportedModel export_model(const TrainedModel& trained) const override { return export_classifier(trained); }
  PlannedRun plan(const std::string& name, const std::filesystem::path& data, const RunConfig& run,
                  const OptionSources&, const Notice& notice) const override {
    return plan_images(name, data, run, notice);
  }
};

}  // namespace

const TaskKind& image_classification() {
  static const ImageClassificationKind kind;
  return kind;
}

}  // namespace mylos::tasks
