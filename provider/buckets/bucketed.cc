#include "provider/buckets/bucketed.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/guarded.h"
#include "base/status_macros.h"
#include "provider/buckets/padding_copy.h"
#include "provider/loaded_model.h"

namespace anemone {
namespace {

// Padding is for tensors, so all values must be tensors.
absl::StatusOr<std::map<std::string, Tensor>> TensorsOf(const NamedValues& values) {
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, value] : values) {
    if (value.kind != OnnxValue::Kind::kTensor) {
      return absl::FailedPreconditionError(
          absl::StrCat("input '", name,
                       "': is not a tensor and cannot be padded; load the model without buckets"));
    }
    tensors[name] = value.tensor;
  }
  return tensors;
}

}  // namespace

absl::StatusOr<const PaddingVerdict*> Bucketed::ProofOf(const BucketSizes& bucket,
                                                        const BucketSizes& sizes) {
  const auto find = [&]() -> const PaddingVerdict* {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = proofs_.find(sizes);
    return found == proofs_.end() ? nullptr : &found->second;
  };
  if (const PaddingVerdict* known = find()) return known;
  const std::lock_guard<std::mutex> making(making_);
  if (const PaddingVerdict* known = find()) return known;  // another thread was faster
  ANEMONE_ASSIGN_OR_RETURN(PaddingVerdict verdict, buckets_.Prove(bucket, sizes));
  const std::lock_guard<std::mutex> lock(mutex_);
  return &proofs_.emplace(sizes, std::move(verdict)).first->second;
}

// Why these inputs cannot be padded although other inputs of the same sizes can; "" if they can.
std::string Bucketed::MaskRefusal(const PaddingProof& proof, const NamedValues& inputs) const {
  const Graph& graph = buckets_.free().graph;
  for (const MaskCondition& condition : proof.masks) {
    const std::string& name = graph.values[graph.inputs[condition.input]].name;
    const auto mask = inputs.find(name);
    if (mask != inputs.end() && Holds(condition, mask->second.tensor)) continue;
    return absl::StrCat("input '", name, "': ",
                        condition.all ? "the mask hides elements, and is combined with another mask"
                                      : "the mask hides a whole row",
                        "; softmax would then spread over the padding");
  }
  return "";
}

std::shared_ptr<const LoadedModel> Bucketed::Find(const Sizes& sizes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto bucket = programs_.find(sizes);
  if (bucket != programs_.end()) return bucket->second;
  const auto found = std::find_if(exact_programs_.begin(), exact_programs_.end(),
                                  [&](const Program& program) { return program.first == sizes; });
  if (found == exact_programs_.end()) return nullptr;
  exact_programs_.splice(exact_programs_.begin(), exact_programs_, found);
  return found->second;
}

// Drops the exact program that was used longest ago. False: there is none.
bool Bucketed::DropOldest() {
  std::shared_ptr<const LoadedModel> dropped;  // freed after the lock
  const std::lock_guard<std::mutex> lock(mutex_);
  if (exact_programs_.empty()) return false;
  dropped = std::move(exact_programs_.back().second);
  exact_programs_.pop_back();
  if (last_ == dropped) last_ = nullptr;
  return true;
}

absl::StatusOr<std::shared_ptr<const LoadedModel>> Bucketed::Make(const Sizes& sizes,
                                                                  const EarlierProgram& earlier) {
  const ImportOptions importing = buckets_.OptionsAt(sizes.buckets, sizes.shapes);
  if (earlier.Serves(importing)) return earlier.program;
  for (;;) {
    auto made = load_(importing);
    if (made.ok()) return made;
    const bool may_retry = options_.memory_is_limited && absl::IsResourceExhausted(made.status());
    if (!may_retry || !DropOldest()) return made;
  }
}

absl::StatusOr<std::shared_ptr<const LoadedModel>> Bucketed::ProgramOf(
    const Sizes& sizes, bool exact, const EarlierProgram& earlier) {
  if (auto known = Find(sizes)) return known;
  const std::lock_guard<std::mutex> making(making_);
  if (auto known = Find(sizes)) return known;  // another thread was faster
  ANEMONE_ASSIGN_OR_RETURN(std::shared_ptr<const LoadedModel> made, Make(sizes, earlier));
  std::shared_ptr<const LoadedModel> dropped;  // freed after the lock
  const std::lock_guard<std::mutex> lock(mutex_);
  if (made != earlier.program) Add(made->times());
  if (!exact) return programs_[sizes] = std::move(made);
  exact_programs_.emplace_front(sizes, made);
  if (exact_programs_.size() > options_.most_exact) {
    dropped = std::move(exact_programs_.back().second);
    exact_programs_.pop_back();
  }
  return made;
}

// Sets the use, program and layouts of a job with buckets, and pads its inputs.
absl::Status Bucketed::ChooseBucket(Job& job) {
  ANEMONE_ASSIGN_OR_RETURN(const auto tensors, TensorsOf(job.inputs));
  ANEMONE_ASSIGN_OR_RETURN(job.use.sizes, buckets_.SizesOf(tensors));
  job.use.bucket = buckets_.BucketOf(job.use.sizes);
  if (job.use.bucket != job.use.sizes) {
    ANEMONE_ASSIGN_OR_RETURN(const PaddingVerdict* verdict, ProofOf(job.use.bucket, job.use.sizes));
    job.use.refusal = verdict->proof ? MaskRefusal(*verdict->proof, job.inputs) : verdict->refusal;
    job.use.padded = job.use.refusal.empty();
    if (job.use.padded) job.layouts = &verdict->proof->outputs;
  }
  const bool exact = !job.use.refusal.empty();
  if (exact) job.use.bucket = job.use.sizes;
  ANEMONE_ASSIGN_OR_RETURN(job.program, ProgramOf({job.use.bucket, {}}, exact));
  if (!job.use.padded) return absl::OkStatus();
  for (const PortInfo& port : job.program->inputs) {
    const auto given = job.inputs.find(port.name);
    if (given == job.inputs.end()) continue;
    ANEMONE_ASSIGN_OR_RETURN(given->second.tensor, PadTensor(given->second.tensor, port.dims));
  }
  return absl::OkStatus();
}

absl::StatusOr<Bucketed::Job> Bucketed::Prepare(const NamedValues& inputs) {
  Job job{.inputs = inputs};
  if (has_buckets()) {
    ANEMONE_RETURN_IF_ERROR(ChooseBucket(job));
  } else {
    ANEMONE_ASSIGN_OR_RETURN(InputShapes shapes, buckets_.ShapesOf(inputs));
    ANEMONE_ASSIGN_OR_RETURN(job.program, ProgramOf({{}, std::move(shapes)}, /*exact=*/true));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  last_ = job.program;
  return job;
}

absl::StatusOr<NamedValues> Bucketed::Crop(const Job& job, NamedValues outputs) {
  if (job.layouts == nullptr) return outputs;
  const std::vector<PortInfo>& ports = job.program->outputs;
  for (size_t i = 0; i < job.layouts->size(); ++i) {
    Tensor& output = outputs.at(ports[i].name).tensor;
    auto cropped = CropTensor(output, (*job.layouts)[i]);
    if (!cropped.ok()) {
      return Annotated(cropped.status(), absl::StrCat("output '", ports[i].name, "'"));
    }
    output = *std::move(cropped);
  }
  return outputs;
}

absl::Status Bucketed::MakeThoseOf(
    Bucketed& other, const Adopt& adopt,
    const std::function<absl::Status(const LoadedModel& theirs, const LoadedModel& ours)>& check) {
  struct Wanted {
    Program program;
    bool exact;
  };
  std::vector<Wanted> wanted;  // of those of exact sizes, the last used is the last
  std::shared_ptr<const LoadedModel> last;
  {
    const std::lock_guard<std::mutex> lock(other.mutex_);
    for (const auto& [sizes, program] : other.programs_)
      wanted.push_back({{sizes, program}, false});
    for (auto it = other.exact_programs_.rbegin(); it != other.exact_programs_.rend(); ++it) {
      wanted.push_back({*it, true});
    }
    last = other.last_;
  }
  for (const auto& [program, exact] : wanted) {
    ANEMONE_ASSIGN_OR_RETURN(auto made, ProgramOf(program.first, exact, {program.second, adopt}));
    if (made != program.second) ANEMONE_RETURN_IF_ERROR(check(*program.second, *made));
    const std::lock_guard<std::mutex> lock(mutex_);
    if (program.second == last) last_ = std::move(made);
  }
  return absl::OkStatus();
}

void Bucketed::Add(const LoadTimes& took) {
  times_.load += took.load;
  times_.plan += took.plan;
  times_.compile += took.compile;
}

void Bucketed::AddTimes(const LoadTimes& took) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Add(took);
}

void Bucketed::Show(std::shared_ptr<const LoadedModel> program) {
  const std::lock_guard<std::mutex> lock(mutex_);
  last_ = std::move(program);
}

std::shared_ptr<const LoadedModel> Bucketed::last() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return last_;
}

LoadTimes Bucketed::times() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return times_;
}

absl::StatusOr<const SizedPlans*> Bucketed::Plans() {
  return Guarded("plan the model", [&]() -> absl::StatusOr<const SizedPlans*> {
    const std::lock_guard<std::mutex> making(making_);
    if (plans_ == nullptr) {
      ANEMONE_ASSIGN_OR_RETURN(SizedPlans plans,
                               SizedPlans::OfBuckets(buckets_, {&options_.planning, 1}));
      plans_ = std::make_unique<const SizedPlans>(std::move(plans));
    }
    return plans_.get();
  });
}

}  // namespace anemone
