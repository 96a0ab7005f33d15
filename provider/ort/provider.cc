#include "provider/ort/provider.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/guarded.h"
#include "base/memory_limit.h"
#include "base/status_macros.h"
#include "base/threads.h"
#include "kernels/custom_domain.h"
#include "provider/devices.h"
#include "provider/ort/claims.h"
#include "provider/ort/evaluator.h"
#include "provider/ort_status.h"
#include "provider/work_limits.h"

namespace anemone {
namespace {

// The callbacks of a fused node.
struct ComputeInfo : OrtNodeComputeInfo {
  ComputeInfo(Provider& owner, std::unique_ptr<FusedProgram> compiled)
      : OrtNodeComputeInfo{}, provider(owner), program(std::move(compiled)) {
    ort_version_supported = kOrtApiVersion;
    CreateState = [](OrtNodeComputeInfo* self, OrtNodeComputeContext*, void** state) noexcept {
      *state = self;
      return static_cast<OrtStatus*>(nullptr);
    };
    ReleaseState = [](OrtNodeComputeInfo*, void*) noexcept {};
    Compute = [](OrtNodeComputeInfo* self, void*, OrtKernelContext* context) noexcept {
      auto& info = *static_cast<ComputeInfo*>(self);
      return ToOrt(info.provider.api(), Guarded("run a segment", [&] {
                     return info.provider.Run(*info.program, context);
                   }));
    };
  }
  Provider& provider;
  std::unique_ptr<FusedProgram> program;
};

Provider& Of(OrtEp* ep) { return *static_cast<Provider*>(ep); }

OrtStatus* GetCapability(OrtEp* ep, const OrtGraph* graph, OrtEpGraphSupportInfo* info) noexcept {
  return ToOrt(Of(ep).api(), Guarded("claim nodes", [&] { return Of(ep).Claim(graph, info); }));
}

OrtStatus* CompileGraphs(OrtEp* ep, const OrtGraph** graphs, const OrtNode** fused_nodes,
                         size_t count, OrtNodeComputeInfo** infos, OrtNode** contexts) noexcept {
  return ToOrt(Of(ep).api(), Guarded("compile a segment", [&]() -> absl::Status {
                 std::vector<std::unique_ptr<ComputeInfo>> made;
                 for (size_t i = 0; i < count; ++i) {
                   ANEMONE_ASSIGN_OR_RETURN(
                       auto program, Of(ep).Compile(graphs[i], fused_nodes[i], &contexts[i]));
                   made.push_back(std::make_unique<ComputeInfo>(Of(ep), std::move(program)));
                 }
                 // Not before: a session that is refused leaves no report.
                 ANEMONE_RETURN_IF_ERROR(Of(ep).WriteReport());
                 for (size_t i = 0; i < count; ++i) infos[i] = made[i].release();
                 return absl::OkStatus();
               }));
}

void ReleaseInfos(OrtEp*, OrtNodeComputeInfo** infos, size_t count) noexcept {
  for (size_t i = 0; i < count; ++i) delete static_cast<ComputeInfo*>(infos[i]);
}

ImportOptions Importing(const OrtApi& api) {
  RegisterCustomDomain();
  return {.evaluate = MakeHostEvaluator(api)};
}

PackagedPort PortOf(const Value& value) { return {value.name, value.type, value.dims()}; }

FusedNetwork NetworkOf(const Fused& fused) {
  const Graph& graph = fused.model.graph;
  const Segment& segment = fused.plan.segments.front();
  FusedNetwork network{.segment = {.network = segment.network}};
  for (ValueId id : segment.inputs) network.segment.inputs.push_back(PortOf(graph.values[id]));
  for (ValueId id : segment.outputs) network.segment.outputs.push_back(PortOf(graph.values[id]));
  for (ValueId id : graph.outputs) {
    const Value& value = graph.values[id];
    if (value.constant) network.constants[value.name] = value.constant->Copy();
  }
  return network;
}

std::string TraceText(Trace& trace) {
  return absl::StrCat("{\"traceEvents\":[", trace.Take(), "]}\n");
}

// Adds everything that determines the package of a fused graph.
absl::Status AddToKey(const HostGraph& graph, const KnownValues& inputs,
                      const PluginOptions& options, CacheKey& key) {
  const auto skeleton = MakeSkeleton(graph, graph.AllNodes(), {}, inputs);
  skeleton->proto.mutable_graph()->clear_name();
  key.Add("graph", skeleton->proto.SerializeAsString());
  for (const Payload& payload : skeleton->payloads) {
    ANEMONE_RETURN_IF_ERROR(key.AddInTime(
        "weights", {reinterpret_cast<const char*>(payload.bytes.data()), payload.bytes.size()}));
  }
  for (const Setting& setting : AllSettings()) {
    if (setting.key != nullptr) key.Add(setting.name, setting.key(options.settings));
  }
  if (!options.settings.limits.empty()) key.Add("limits", LimitsText(options.settings));
  return absl::OkStatus();
}

}  // namespace

Provider::Provider(const OrtApi& api, const OrtLogger* logger, PluginOptions options,
                   ContextOptions contexts, bool claims_once)
    : OrtEp{},
      api_(api),
      logger_(logger),
      options_(std::move(options)),
      contexts_(std::move(contexts)),
      claims_once_(claims_once),
      importing_(Importing(api)),
      memory_(options_.settings.memory_limit),
      arena_(ThreadsOf(options_.settings.threads)),
      compatibility_(CompatibilityInfo()),
      watch_([this](const RangeWarning& warning) {
        Log(ORT_LOGGING_LEVEL_WARNING,
            absl::StrCat("ANE: ", RangeWarningText(warning, "the option policy=", "")));
      }) {
  ort_version_supported = kOrtApiVersion;
  GetName = [](const OrtEp*) noexcept { return kProviderName; };
  OrtEp::GetCapability = anemone::GetCapability;
  OrtEp::Compile = CompileGraphs;
  ReleaseNodeComputeInfos = ReleaseInfos;
  OnRunStart = [](OrtEp* ep, const OrtRunOptions*) noexcept {
    Of(ep).NoteRun();
    return static_cast<OrtStatus*>(nullptr);
  };
  GetCompiledModelCompatibilityInfo = [](OrtEp* ep, const OrtGraph*) noexcept {
    return Of(ep).compatibility().c_str();
  };
  if (options_.cache_dir.empty()) return;
  auto cache = ProgramCache::Open({.folder = options_.cache_dir, .note = [this](auto note) {
                                     Log(ORT_LOGGING_LEVEL_WARNING, std::string(note));
                                   }});
  // Errors of the cache do not stop the session.
  if (!cache.ok()) {
    Log(ORT_LOGGING_LEVEL_WARNING, absl::StrCat("cache_dir: ", cache.status().message()));
  } else {
    cache_ = *std::move(cache);
  }
}

absl::Status Provider::OpenDevice() {
  const auto warn = [this](const std::string& note) {
    Log(ORT_LOGGING_LEVEL_WARNING, absl::StrCat("ANE: ", note));
  };
  ANEMONE_ASSIGN_OR_RETURN(device_, MakeDevice(options_.settings, *options_.planning.target,
                                               {.numerics = options_.numerics}, warn));
  return absl::OkStatus();
}

Provider::~Provider() {
  if (options_.profile_path.empty() || !has_run_) return;
  // The factory has checked the path. An error now cannot be reported: the logger is gone.
  ReplaceFile(options_.profile_path, TraceText(trace_)).IgnoreError();
}

void Provider::Log(OrtLoggingLevel severity, const std::string& message) const {
  OrtLoggingLevel least = ORT_LOGGING_LEVEL_WARNING;
  const bool known = FromOrt(api_, api_.Logger_GetLoggingSeverityLevel(logger_, &least)).ok();
  if (known && severity < least) return;
  FromOrt(api_, api_.Logger_LogMessage(logger_, severity, message.c_str(), ORT_TSTR(__FILE__),
                                       __LINE__, kProviderName))
      .IgnoreError();  // an error of the logger cannot be reported
}

// Warns of nodes that stay on the CPU, because they are slow. ONNX Runtime's providers do the same.
void Provider::Tell(const HostGraph& graph, const HostPlan& made) {
  const bool is_whole = made.plan.cpu_segments() == 0;
  const OrtLoggingLevel severity =
      is_whole || graph.is_body ? ORT_LOGGING_LEVEL_INFO : ORT_LOGGING_LEVEL_WARNING;
  Log(severity, ClaimLine(made));
  if (!is_whole) Log(severity, CpuLine(made));
  if (!made.plan.warnings.empty()) Log(ORT_LOGGING_LEVEL_INFO, WarningLine(made));
  for (const std::string& line : ReasonLines(made)) Log(ORT_LOGGING_LEVEL_VERBOSE, line);
}

absl::Status Provider::AddClaim(const HostGraph& graph, const std::vector<int>& nodes,
                                OrtEpGraphSupportInfo* claimed) const {
  std::vector<const OrtNode*> handles;
  handles.reserve(nodes.size());
  for (int i : nodes) handles.push_back(graph.nodes[i].handle);
  // The program has a copy of the weights: packed, or that of CopyConstants().
  const OrtNodeFusionOptions options{kOrtApiVersion, /*drop_constant_initializers=*/true};
  return FromOrt(api_, api_.GetEpApi()->EpGraphSupportInfo_AddNodesToFuse(
                           claimed, handles.data(), handles.size(), &options));
}

// In a compiled model each EPContext node is a separate claim. The other nodes were refused when it
// was compiled.
absl::StatusOr<bool> Provider::ClaimContexts(const HostGraph& graph,
                                             OrtEpGraphSupportInfo* claimed) const {
  bool has_any = false;
  for (int i : graph.AllNodes()) {
    if (!IsContext(graph.nodes[i])) continue;
    has_any = true;
    if (graph.nodes[i].provider.empty()) ANEMONE_RETURN_IF_ERROR(AddClaim(graph, {i}, claimed));
  }
  return has_any;
}

// ONNX Runtime only logs an error of the question which nodes the provider takes, and runs them
// itself. If a limit that the user has set is the reason, a node is claimed, so that Compile()
// gives the error to the session.
absl::Status Provider::ClaimToFail(const HostGraph& graph, absl::Status why,
                                   OrtEpGraphSupportInfo* claimed) {
  const bool is_over =
      IsOutOfTime(why) || ((memory_.is_limited() || !options_.settings.limits.empty()) &&
                           absl::IsResourceExhausted(why));
  if (!is_over) return why;
  for (const int i : graph.AllNodes()) {
    const HostNode& node = graph.nodes[i];
    if (!node.provider.empty() || !node.opaque.empty()) continue;
    ANEMONE_RETURN_IF_ERROR(AddClaim(graph, {i}, claimed));
    over_limit_ = std::move(why);
    return absl::OkStatus();
  }
  return why;
}

absl::Status Provider::Claim(const OrtGraph* graph, OrtEpGraphSupportInfo* claimed) {
  if (!over_limit_.ok()) return absl::OkStatus();
  const WorkLimits limits(options_.settings);
  ANEMONE_ASSIGN_OR_RETURN(const HostGraph host, ReadHostGraph(api_, graph));
  if (host.nodes.empty() || (claims_once_ && (host.is_body || has_compiled_))) {
    return absl::OkStatus();
  }
  // ONNX Runtime calls this again after it has fused the claimed nodes.
  const bool is_done = std::any_of(host.nodes.begin(), host.nodes.end(),
                                   [](const auto& node) { return node.provider == kProviderName; });
  if (is_done) return absl::OkStatus();
  saw_main_ |= !host.is_body;
  ANEMONE_ASSIGN_OR_RETURN(const bool is_compiled, ClaimContexts(host, claimed));
  if (is_compiled) return absl::OkStatus();
  const absl::StatusOr<HostPlan> planned = Guarded("plan the model", [&] {
    return PlanHostGraph(host, options_.planning, options_.min_segment_nodes, importing_);
  });
  if (!planned.ok()) return ClaimToFail(host, planned.status(), claimed);
  const HostPlan& made = *planned;
  for (const auto& claim : made.claims) {
    ANEMONE_RETURN_IF_ERROR(AddClaim(host, claim.nodes, claimed));
    for (const auto& [name, type] : claim.inputs.types) inputs_.types[name] = type;
    for (const auto& [name, constant] : claim.inputs.constants) {
      inputs_.constants[name] = constant.Copy();  // ONNX Runtime frees its memory
    }
  }
  Tell(host, made);
  if (options_.report_path.empty()) return absl::OkStatus();
  report_.Add(host.name, made);
  return made.claims.empty() ? WriteReport() : absl::OkStatus();  // else when they are compiled
}

// Bodies come first. A session that is refused because of the graph around them leaves no report.
absl::Status Provider::WriteReport() const {
  const bool waits = options_.report_path.empty() || !saw_main_;
  return waits ? absl::OkStatus() : report_.Write(options_.report_path);
}

absl::Status Provider::CheckTarget(const Package& package) const {
  if (!options_.names_target || package.target == options_.planning.target) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the model was compiled for ", package.target->option_name(), ", but the session is for ",
      options_.planning.target->option_name(), "; compile it for that target"));
}

absl::StatusOr<Package> Provider::PlanPackage(const HostGraph& graph) const {
  ANEMONE_ASSIGN_OR_RETURN(const Fused fused, PlanFused(graph, graph.AllNodes(), inputs_,
                                                        options_.planning, importing_));
  return PackageOf(NetworkOf(fused), *options_.planning.target, options_.planning.route);
}

absl::StatusOr<Package> Provider::PackageFor(const HostGraph& graph) {
  if (graph.nodes.size() == 1 && IsContext(graph.nodes.front())) {
    ANEMONE_ASSIGN_OR_RETURN(Package package,
                             ReadContext(graph.nodes.front(), contexts_, graph.path));
    const absl::Status fits = CheckTarget(package);
    if (!fits.ok()) return NamedAfter(graph.nodes.front(), fits);
    return package;
  }
  if (cache_ == nullptr) return PlanPackage(graph);
  CacheKey key;
  ANEMONE_RETURN_IF_ERROR(AddToKey(graph, inputs_, options_, key));
  absl::StatusOr<std::optional<Package>> found = cache_->Find(key);
  if (found.ok() && found->has_value()) return **std::move(found);
  ANEMONE_ASSIGN_OR_RETURN(Package package, PlanPackage(graph));
  const absl::Status stored = cache_->Store(key, package);
  if (!stored.ok()) {
    Log(ORT_LOGGING_LEVEL_WARNING, absl::StrCat("cache_dir: ", stored.message()));
  }
  return package;
}

absl::StatusOr<std::unique_ptr<FusedProgram>> Provider::Compile(const OrtGraph* graph,
                                                                const OrtNode* fused_node,
                                                                OrtNode** context) {
  const WorkLimits limits(options_.settings);
  has_compiled_ = true;
  ANEMONE_RETURN_IF_ERROR(over_limit_);
  ANEMONE_ASSIGN_OR_RETURN(HostGraph host, ReadHostGraph(api_, graph));
  if (options_.numerics.is_exact()) host.CopyConstants();
  ANEMONE_ASSIGN_OR_RETURN(const NodeNames names, ReadNodeNames(api_, fused_node));
  ANEMONE_ASSIGN_OR_RETURN(Package package, PackageFor(host));
  for (PackagedSegment& segment : package.segments) segment.name = names.name;
  if (contexts_.enable && context != nullptr) {
    ANEMONE_ASSIGN_OR_RETURN(*context, MakeContext(api_, contexts_, host.path, names, package));
  }
  const Target& target = *package.target;
  const Route route = package.route;
  ANEMONE_ASSIGN_OR_RETURN(const FusedNetwork fused, FusedNetworkOf(std::move(package)));
  const MemoryLimit::Pause taken;
  if (memory_.is_limited()) {
    const MemoryNeed need = NeedOf(fused.segment.network, route, {.numerics = options_.numerics});
    ANEMONE_ASSIGN_OR_RETURN(taken_.emplace_back(), memory_.Take(names.name, need));
  }
  absl::StatusOr<std::unique_ptr<FusedProgram>> program;
  arena_.execute(WithDeadline([&] {
    program = FusedProgram::Make(api_, device_, target, route, fused, names, host.types);
  }));
  if (!program.ok() && IsContext(host.nodes.front())) {
    return NamedAfter(host.nodes.front(), program.status());
  }
  return program;
}

absl::Status Provider::Run(FusedProgram& program, OrtKernelContext* context) {
  ANEMONE_RETURN_IF_ERROR(process_.Check("session"));
  Trace* trace = options_.profile_path.empty() ? nullptr : &trace_;
  absl::Status status;
  const TimeLimit limit(options_.settings.time_limit);
  arena_.execute(WithDeadline([&] { status = program.Run(context, watch_, trace); }));
  return status;
}

}  // namespace anemone
