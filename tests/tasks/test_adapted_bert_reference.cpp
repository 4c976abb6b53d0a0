// Compares an adapter of a BERT that classifies whole texts, and its classifier, which is trained whole, with values
// recorded from PyTorch and PEFT.

#include "core/kernels/cross_entropy.hpp"
#include "core/kernels/embedding.hpp"
#include "families/bert/bert_body.hpp"
#include "families/bert/bert_config.hpp"
#include "nn/layers/linear.hpp"
#include "nn/network.hpp"
#include "tests/tasks/recorded_engine.hpp"

namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
namespace names = nn::names;

constexpr const char* classes = "classes";  ///< (S), in the batch

/// Returns f(x) for each element of a matrix.
template <class F>
Matrix<float> mapped(const ConstMatrix<float>& x, const F& f) {
  Values values = host_values(x);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = f(values[i], i);
  return device_matrix<float>(values, x.extent(0), x.extent(1));
}

/// A classifier of tanh(pooler(first row of a sample)), as in BertForSequenceClassification.
class PooledHead final : public nn::Head<float> {
 public:
  explicit PooledHead(std::size_t count) : count_(count) {}

  void add_tensors(ParameterTable::Builder& builder, std::size_t width) const override {
    nn::add_linear_tensors(builder, "bert.pooler.dense", width, width, {});
    nn::add_linear_tensors(builder, "classifier", width, count_, {});
  }
  void find_tensors(const ParameterTable& table) override {
    pooler_ = nn::find_linear(table, "bert.pooler.dense");
    classifier_ = nn::find_linear(table, "classifier");
  }
  void plan(Arena&, const BatchShape&, const nn::HeadInput<float>&, Purpose) const override {}
  void train(const nn::Pass& pass, const Batch& batch, float scale, const nn::HeadInput<float>& input,
             const Vector<float>& losses) const override {
    const std::size_t samples = batch.shape().samples, width = input.x.extent(1);
    const Matrix<float> first = first_rows(pass, batch, input.x), pooled = pool(pass, first);
    const Matrix<float> dlogits("test::dlogits", samples, count_), dpooled("test::dpooled", samples, width);
    const Vector<float> workspace("test::workspace", column_sum_workspace(samples, width));
    cross_entropy<float>(pass.space, classify(pass, pooled), batch.integers(classes), scale, losses, dlogits);
    nn::linear_gradients<float>(pass, classifier_, pooled, dlogits, workspace);
    nn::linear_input_gradient<float>(pass, classifier_, dlogits, 0.0f, dpooled);
    const Values y = host_values(pooled);
    const Matrix<float> dpooler = mapped(dpooled, [&](double dy, std::size_t i) { return dy * (1.0 - y[i] * y[i]); });
    nn::linear_gradients<float>(pass, pooler_, first, dpooler, workspace);
    nn::linear_input_gradient<float>(pass, pooler_, dpooler, 0.0f, first);
    const Values dfirst = host_values(first);
    Values dx(input.dx.size(), 0.0);
    for (std::size_t sample = 0; sample < samples; ++sample) {
      const auto from = dfirst.begin() + static_cast<std::ptrdiff_t>(sample * width);
      const std::size_t row = batch.host_sample_starts()[sample];
      std::copy_n(from, width, dx.begin() + static_cast<std::ptrdiff_t>(row * width));
    }
    Kokkos::deep_copy(input.dx, device_matrix<float>(dx, input.dx.extent(0), width));
  }
  Matrix<float> predict(const nn::Pass& pass, const Batch& batch, const nn::HeadInput<float>& input,
                        const Vector<float>& losses) const override {
    const Matrix<float> logits = classify(pass, pool(pass, first_rows(pass, batch, input.x)));
    cross_entropy<float>(pass.space, logits, batch.integers(classes), 1.0f, losses, {});
    return logits;
  }
  std::vector<GemmProduct> products(const BatchShape&, Purpose) const override { return {}; }
  double training_flops(const BatchShape&) const override { return 0.0; }

 private:
  Matrix<float> first_rows(const nn::Pass& pass, const Batch& batch, const ConstMatrix<float>& x) const {
    const auto starts = batch.host_sample_starts().first(batch.shape().samples);
    const Matrix<float> first("test::first", starts.size(), x.extent(1));
    const auto rows = device_integers(std::vector<std::int32_t>(starts.begin(), starts.end()));
    embedding_lookup<float>(pass.space, rows, x, false, first);
    return first;
  }
  Matrix<float> pool(const nn::Pass& pass, const ConstMatrix<float>& first) const {
    const Matrix<float> y("test::pooler", first.extent(0), first.extent(1));
    nn::linear_forward<float>(pass, pooler_, first, y);
    return mapped(y, [](double value, std::size_t) { return std::tanh(value); });
  }
  Matrix<float> classify(const nn::Pass& pass, const ConstMatrix<float>& pooled) const {
    const Matrix<float> logits("test::logits", pooled.extent(0), count_);
    nn::linear_forward<float>(pass, classifier_, pooled, logits);
    return logits;
  }

  std::size_t count_;
  nn::Linear pooler_, classifier_;
};

RecordedSamples read_classified_texts(const fs::path& batch_file) {
  const data::SafetensorsFile file(FileReader(), batch_file);
  RecordedSamples samples = read_recorded_segments(file);
  const auto labels = file.read_integer("labels");
  samples.fill = [fill = samples.fill, labels](std::span<const std::size_t> chosen, Batch& batch) {
    fill(chosen, batch);
    std::vector<std::int32_t> own;
    for (const std::size_t sample : chosen) own.push_back(static_cast<std::int32_t>(labels[sample]));
    batch.set(classes, std::span<const std::int32_t>(own));
  };
  return samples;
}

struct ClassifierEngine : RecordedEngine<nn::Model> {
  ClassifierEngine(const fs::path& folder, const std::string& provider)
      : RecordedEngine(folder, provider, with_adapter(folder, make(model_folder(folder))),
                       read_classified_texts(folder / "batch.safetensors")) {}

  static std::unique_ptr<nn::Model> make(const fs::path& folder) {
    const std::size_t count = read_recorded_json(folder / "config.json")["id2label"].size();
    return nn::make_network<float>(
        families::make_bert_body<float>(families::read_bert_config({FileReader(), folder / "config.json"})),
        std::make_unique<PooledHead>(count));
  }
};

class AdaptedBertReference : public RecordedReference {
 protected:
  void SetUp() override {
    if (recorded_models("lora").empty()) GTEST_SKIP() << "no recorded adapters (MYLOS_REFERENCE)";
  }

  /// Calls check(folder, engine) with each exact GEMM provider.
  template <class Check>
  void for_each_classifier(const Check& check) {
    for_each_recorded({"lora"}, [&](const fs::path& folder, const std::string& provider) {
      const auto config = read_recorded_json(model_folder(folder) / "config.json");
      if (config["architectures"][0] != "BertForSequenceClassification") return;
      ClassifierEngine engine(folder, provider);
      check(folder, engine);
      ++compared_;
    });
    EXPECT_GT(compared_, 0u);
  }

 private:
  std::size_t compared_ = 0;
};

TEST_F(AdaptedBertReference, LogitsAndLoss) {
  for_each_classifier([&](const fs::path& folder, ClassifierEngine& engine) {
    const data::SafetensorsFile recorded(FileReader(), folder / "outputs.safetensors");
    Batch batch;
    engine.task.samples().assemble(batch);
    const Vector<float> losses("test::losses", batch.shape().samples);
    compare(host_values(engine.task.model().predict(engine.pass(), batch, losses)), recorded.read_float("logits"),
            "logits");
    const Values all = host_values(losses);
    const double sum = std::accumulate(all.begin(), all.end(), 0.0);
    compare(Values{sum / static_cast<double>(all.size())}, recorded.read_float("loss"), "loss");
  });
}

TEST_F(AdaptedBertReference, Gradients) {
  for_each_classifier([&](const fs::path& folder, ClassifierEngine& engine) { compare_gradients(folder, engine); });
}

TEST_F(AdaptedBertReference, AdamWSteps) {
  for_each_classifier([&](const fs::path& folder, ClassifierEngine& engine) { compare_steps(folder, engine); });
}

}  // namespace
}  // namespace mylos::tests
