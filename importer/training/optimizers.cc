#include "importer/training/optimizers.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/fp16.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/usage_error.h"
#include "importer/elements.h"

namespace anemone {
namespace {

// The square root of Adam's second moment is taken of at least this: below it numbers are
// subnormal, and engines flush some of them (numerics.json, st-subnormal-table).
constexpr double kLeastVariance = fp16::kSmallestNormal;
// The square of a larger number exceeds fp16.
constexpr double kLargestFactor = 255;

bool IsAdam(const TrainingOptions& options) {
  return options.optimizer == "adam" || options.optimizer == "adamw";
}

bool HasPairs(const TrainingOptions& options) { return options.pair && !options.update_on_cpu; }

// A weight as a pair: the fp16 number next to each element, and what it lacks times kRestScale.
struct Pair {
  Tensor value, rest;
};
Pair PairOf(const Tensor& weight) {
  std::vector<double> values(weight.elements()), rests(weight.elements());
  for (int64_t i = 0; i < weight.elements(); ++i) {
    values[i] = std::clamp<double>(ElementAsDouble(weight, i), fp16::kLowest, fp16::kLargest);
  }
  const Tensor halves = FromDoubles(DataType::kFloat16, weight.dims(), values);
  for (int64_t i = 0; i < weight.elements(); ++i) {
    const double exact = values[i];
    values[i] = ElementAsDouble(halves, i);
    rests[i] = (exact - values[i]) * kRestScale;
  }
  return {FromDoubles(weight.type(), weight.dims(), values),
          FromDoubles(weight.type(), weight.dims(), rests)};
}

class UpdateWriter {
 public:
  UpdateWriter(GraphWriter& w, const std::map<ValueId, Tensor>& first, TrainingStep& step)
      : w_(w), options_(step.options), first_(first), step_(step) {}

  void Write(const std::vector<Gradient>& gradients);

 private:
  // An input of one number, as a value of `type`.
  ValueId Number(const char* name, DataType type);
  ValueId Scalar(double value) { return w_.Scalar(type_, value); }
  // A new state like `weight`, with zeros first.
  ValueId NewState(const Gradient& g, absl::string_view what);
  // Makes `value` the next value of the state whose input is `input`.
  int Keep(ValueId input, ValueId value, Tensor first);
  int KeepLike(ValueId input, ValueId value, ValueId weight);

  ValueId Limited(ValueId value);
  ValueId Sanitized(ValueId gradient, ValueId is_number);
  ValueId Peak(ValueId is_number, ValueId clean, ValueId ready);
  void OutputPeaks(const std::vector<ValueId>& peaks);
  ValueId Accumulated(const Gradient& g, ValueId gradient);
  ValueId Clipping(const std::vector<ValueId>& gradients);
  ValueId MovingMean(ValueId mean, ValueId value, const char* share, double constant);
  ValueId Step(const Gradient& g, ValueId gradient);
  ValueId AdamStep(const Gradient& g, ValueId gradient);
  ValueId MomentumStep(const Gradient& g, ValueId gradient);
  void Apply(const Gradient& g, ValueId change);

  GraphWriter& w_;
  const TrainingOptions& options_;
  const std::map<ValueId, Tensor>& first_;
  TrainingStep& step_;
  DataType type_ = DataType::kFloat;  // of the weight that is updated
  std::map<std::pair<std::string, DataType>, ValueId> numbers_;
};

ValueId UpdateWriter::Number(const char* name, DataType type) {
  const auto known = numbers_.find({name, type});
  if (known != numbers_.end()) return known->second;
  ValueId made = kNone;
  if (type == DataType::kFloat) {
    made = AddValue(w_.graph(), name);
    w_.graph().values[made].type = type;
    w_.graph().values[made].shape = Shape{{.size = 1}};
    w_.graph().inputs.push_back(made);
  } else {
    made = w_.Emit("Cast", {Number(name, DataType::kFloat)}, {{"to", static_cast<int64_t>(type)}});
  }
  numbers_[{name, type}] = made;
  return made;
}

ValueId UpdateWriter::NewState(const Gradient& g, absl::string_view what) {
  const ValueId made =
      AddValue(w_.graph(), w_.names().Fresh(absl::StrCat("training/", g.name, "/", what)));
  Value& value = w_.graph().values[made];
  value.type = w_.value(g.weight).type;
  value.shape = w_.value(g.weight).shape;
  w_.graph().inputs.push_back(made);
  return made;
}

int UpdateWriter::Keep(ValueId input, ValueId value, Tensor first) {
  const ValueId output =
      AddValue(w_.graph(), w_.names().Fresh(absl::StrCat(w_.value(input).name, "/next")));
  w_.EmitTo(output, "Identity", {value});
  w_.graph().values[output].type = w_.value(input).type;
  w_.graph().values[output].shape = w_.value(input).shape;
  w_.graph().outputs.push_back(output);
  step_.states.push_back({w_.value(input).name, w_.value(output).name, std::move(first)});
  return static_cast<int>(step_.states.size()) - 1;
}

int UpdateWriter::KeepLike(ValueId input, ValueId value, ValueId weight) {
  return Keep(input, value, Tensor::Zeros(w_.value(weight).type, w_.dims(weight)));
}

// An infinity becomes 65504: of a gradient, and of a sum with one that is that large. Without it a
// state would stay infinite.
ValueId UpdateWriter::Limited(ValueId value) {
  if (!options_.sanitize) return value;
  return w_.Emit("Clip", {value, Scalar(fp16::kLowest), Scalar(fp16::kLargest)});
}

ValueId UpdateWriter::Sanitized(ValueId gradient, ValueId is_number) {
  if (!options_.sanitize) return gradient;
  return w_.Emit("Where", {is_number, Limited(gradient), Scalar(0)});
}

// The largest magnitude of a gradient, float32[1]; 65504 if it has a NaN. `clean` is the sanitized
// gradient, `ready` the sum of accumulated ones: the same value without accumulation.
ValueId UpdateWriter::Peak(ValueId is_number, ValueId clean, ValueId ready) {
  ValueId size = w_.Emit("Abs", {w_.Emit("Where", {is_number, clean, Scalar(fp16::kLargest)})});
  if (ready != clean) size = w_.Emit("Max", {size, w_.Emit("Abs", {ready})});
  const ValueId peak = w_.Reshape(w_.Emit("ReduceMax", {size}, {{"keepdims", int64_t{0}}}), {1});
  if (type_ == DataType::kFloat) return peak;
  return w_.Emit("Cast", {peak}, {{"to", static_cast<int64_t>(DataType::kFloat)}});
}

void UpdateWriter::OutputPeaks(const std::vector<ValueId>& peaks) {
  const ValueId output = AddValue(w_.graph(), w_.names().Fresh("training/peaks"));
  w_.EmitTo(output, "Concat", peaks, {{"axis", int64_t{0}}});
  w_.graph().values[output].type = DataType::kFloat;
  w_.graph().values[output].shape = Shape{{.size = static_cast<int64_t>(peaks.size())}};
  w_.graph().outputs.push_back(output);
  step_.peaks = w_.value(output).name;
}

ValueId UpdateWriter::Accumulated(const Gradient& g, ValueId gradient) {
  const ValueId sum = NewState(g, "sum");
  const ValueId next = Limited(w_.Add(w_.Mul(sum, Number(kKeep, type_)), gradient));
  KeepLike(sum, next, g.weight);
  return next;
}

// The factor that limits the norm of all gradients: 1 / sqrt(max(1, sum((g / limit)^2))). A sum
// beyond fp16 gives 0, and the step changes nothing.
ValueId UpdateWriter::Clipping(const std::vector<ValueId>& gradients) {
  ValueId sum = kNone;
  for (ValueId gradient : gradients) {
    const double limit = options_.clip * options_.loss_scale;
    const ValueId share = w_.Mul(gradient, Scalar(1 / limit));
    const ValueId squares = w_.Emit("ReduceSumSquare", {share}, {{"keepdims", int64_t{0}}});
    const ValueId part = w_.Reshape(squares, {1});
    sum = sum == kNone ? part : w_.Add(sum, part);
  }
  const ValueId root = w_.Emit("Sqrt", {w_.Emit("Max", {sum, Scalar(1)})});
  return w_.Div(Scalar(1), root);
}

// mean + share (value - mean): one rounding of the sum.
ValueId UpdateWriter::MovingMean(ValueId mean, ValueId value, const char* share, double constant) {
  const ValueId part = options_.accumulate > 1 ? Number(share, type_) : Scalar(constant);
  return w_.Add(mean, w_.Mul(Limited(w_.Sub(value, mean)), part));
}

// rate M / (sqrt(V) + epsilon) (guide chapter 15, listing 15.1); the bias corrections are in the
// rate. The scale of the loss cancels, so epsilon has it too.
ValueId UpdateWriter::AdamStep(const Gradient& g, ValueId gradient) {
  const ValueId mean = NewState(g, "mean"), variance = NewState(g, "variance");
  const ValueId next_mean = MovingMean(mean, gradient, kFirst, 1 - options_.beta1);
  ValueId factor = gradient;
  if (!options_.update_on_cpu) {
    factor = w_.Emit("Clip", {gradient, Scalar(-kLargestFactor), Scalar(kLargestFactor)});
  }
  const ValueId next_variance =
      MovingMean(variance, w_.Mul(factor, factor), kSecond, 1 - options_.beta2);
  KeepLike(mean, next_mean, g.weight);
  KeepLike(variance, next_variance, g.weight);
  const double epsilon = options_.epsilon * options_.loss_scale;
  const ValueId limited = options_.update_on_cpu
                              ? next_variance
                              : w_.Emit("Max", {next_variance, Scalar(kLeastVariance)});
  const ValueId root = w_.Add(w_.Emit("Sqrt", {limited}), Scalar(epsilon));
  const ValueId change = w_.Mul(w_.Div(next_mean, root), Number(kRate, type_));
  if (options_.optimizer != "adamw") return change;
  return w_.Add(change, w_.Mul(g.weight, Number(kDecay, type_)));
}

// rate B, with B = momentum B + gradient.
ValueId UpdateWriter::MomentumStep(const Gradient& g, ValueId gradient) {
  if (options_.momentum == 0) return w_.Mul(gradient, Number(kRate, type_));
  const ValueId state = NewState(g, "momentum");
  ValueId next = kNone;
  if (options_.accumulate > 1) {
    const ValueId change = w_.Sub(gradient, w_.Mul(state, Scalar(1 - options_.momentum)));
    next = w_.Add(state, w_.Mul(change, Number(kApply, type_)));
  } else {
    next = w_.Add(w_.Mul(state, Scalar(options_.momentum)), gradient);
  }
  next = Limited(next);
  KeepLike(state, next, g.weight);
  return w_.Mul(next, Number(kRate, type_));
}

ValueId UpdateWriter::Step(const Gradient& g, ValueId gradient) {
  return IsAdam(options_) ? AdamStep(g, gradient) : MomentumStep(g, gradient);
}

// In a pair, the weight is value + rest / kRestScale, and the change has the scale of the rest. A
// change smaller than half a unit of the value's last place stays in the rest.
void UpdateWriter::Apply(const Gradient& g, ValueId change) {
  TrainedWeight weight = {.name = g.name};
  if (!HasPairs(options_)) {
    weight.value = Keep(g.weight, w_.Sub(g.weight, change), first_.at(g.weight));
  } else {
    const ValueId rest = NewState(g, "rest");
    const ValueId left = w_.Sub(rest, change);
    const ValueId next = w_.Add(g.weight, w_.Mul(left, Scalar(1 / kRestScale)));
    const ValueId taken = w_.Mul(w_.Sub(next, g.weight), Scalar(kRestScale));
    Pair first = PairOf(first_.at(g.weight));
    weight.value = Keep(g.weight, next, std::move(first.value));
    weight.rest = Keep(rest, w_.Sub(left, taken), std::move(first.rest));
  }
  step_.weights.push_back(std::move(weight));
}

void UpdateWriter::Write(const std::vector<Gradient>& gradients) {
  std::vector<ValueId> ready, peaks;
  ready.reserve(gradients.size());
  peaks.reserve(gradients.size());
  for (const Gradient& g : gradients) {
    w_.set_place(absl::StrCat("training/", g.name), {});
    type_ = w_.value(g.weight).type;
    const ValueId is_number =
        w_.Emit("Equal", {g.gradient, g.gradient});  // NaN differs from itself
    const ValueId clean = Sanitized(g.gradient, is_number);
    ready.push_back(options_.accumulate > 1 ? Accumulated(g, clean) : clean);
    peaks.push_back(Peak(is_number, clean, ready.back()));
  }
  ValueId factor = kNone;
  if (options_.clip > 0) {
    w_.set_place("training/clip", {});
    factor = Clipping(ready);
  }
  for (size_t i = 0; i < gradients.size(); ++i) {
    w_.set_place(absl::StrCat("training/", gradients[i].name), {});
    type_ = w_.value(gradients[i].weight).type;
    const ValueId gradient = factor == kNone ? ready[i] : w_.Mul(ready[i], factor);
    Apply(gradients[i], Step(gradients[i], gradient));
  }
  w_.set_place("training/peaks", {});
  OutputPeaks(peaks);
}

absl::Status OutOfRange(absl::string_view what, double value, absl::string_view want) {
  return UsageError(
      absl::StrCat("training: ", what, " ", value, ": want ", want, "; give such a number"));
}

}  // namespace

absl::Status CheckLearningRate(double rate) {
  if (rate >= 0 && std::isfinite(static_cast<float>(rate))) return absl::OkStatus();
  return OutOfRange("learning rate", rate, "a number from 0 to 3.4e38");
}

absl::Status CheckOptions(const TrainingOptions& options) {
  const auto is_share = [](double value) { return value >= 0 && value < 1; };
  const std::string& optimizer = options.optimizer;
  if (optimizer != "sgd" && optimizer != "none" && !IsAdam(options)) {
    return UsageError(
        absl::StrCat("training: optimizer '", Printable(optimizer), "': want sgd, adam or adamw"));
  }
  ANEMONE_RETURN_IF_ERROR(CheckLearningRate(options.learning_rate));
  if (!is_share(options.momentum))
    return OutOfRange("momentum", options.momentum, "a number from 0 to below 1");
  if (!is_share(options.beta1))
    return OutOfRange("beta1", options.beta1, "a number from 0 to below 1");
  if (!is_share(options.beta2))
    return OutOfRange("beta2", options.beta2, "a number from 0 to below 1");
  if (!(options.epsilon > 0)) return OutOfRange("epsilon", options.epsilon, "a number above 0");
  if (!(options.weight_decay >= 0))
    return OutOfRange("weight decay", options.weight_decay, "a number from 0");
  if (!(options.clip >= 0) || std::isinf(options.clip)) {
    return OutOfRange("clip", options.clip, "a norm above 0, or 0 for no limit");
  }
  if (!(options.loss_scale >= 1 && options.loss_scale <= 32768)) {
    return OutOfRange("loss scale", options.loss_scale, "a number from 1 to 32768");
  }
  if (options.accumulate < 1 || options.accumulate > 65536) {
    return OutOfRange("accumulate", static_cast<double>(options.accumulate),
                      "a number from 1 to 65536");
  }
  return absl::OkStatus();
}

absl::Status WriteUpdate(GraphWriter& w, const std::vector<Gradient>& gradients,
                         const std::map<ValueId, Tensor>& first, TrainingStep& step) {
  UpdateWriter(w, first, step).Write(gradients);
  return absl::OkStatus();
}

std::map<std::string, Tensor> TrainingStep::Numbers(int64_t run, double learning_rate) const {
  const int64_t accumulate = options.accumulate;
  const bool is_first = run % accumulate == 0, is_last = run % accumulate == accumulate - 1;
  const int64_t step = run / accumulate + 1;
  const auto t = static_cast<double>(step);
  const double scale = HasPairs(options) ? kRestScale : 1;
  double rate = is_last ? learning_rate * scale : 0;
  const double decay = rate * options.weight_decay;
  if (IsAdam(options)) {
    rate *= std::sqrt(1 - std::pow(options.beta2, t)) / (1 - std::pow(options.beta1, t));
  } else {
    rate /= options.loss_scale;
  }
  std::map<std::string, double> numbers = {{kRate, rate}};
  if (options.optimizer == "adamw") numbers[kDecay] = decay;
  if (accumulate > 1) {
    numbers[kKeep] = is_first ? 0 : 1;
    if (IsAdam(options)) {
      numbers[kFirst] = is_last ? 1 - options.beta1 : 0;
      numbers[kSecond] = is_last ? 1 - options.beta2 : 0;
    } else if (options.momentum != 0) {
      numbers[kApply] = is_last ? 1 : 0;
    }
  }
  if (options.optimizer == "none") numbers.clear();
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, value] : numbers) {
    tensors[name] = FromDoubles(DataType::kFloat, {1}, {value});
  }
  return tensors;
}

Tensor WholeWeight(const Tensor& value, const Tensor* rest) {
  std::vector<double> elements(value.elements());
  for (int64_t i = 0; i < value.elements(); ++i) {
    elements[i] = ElementAsDouble(value, i);
    if (rest != nullptr) elements[i] += ElementAsDouble(*rest, i) / kRestScale;
  }
  return FromDoubles(DataType::kFloat, value.dims(), elements);
}

}  // namespace anemone
