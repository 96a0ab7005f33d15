// onnxruntime_ep_ane._anemone: the C++ half of the Python package. The Python half calls it with
// paths or bytes, and with values as in values.h.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "anemone/check.h"
#include "anemone/generator.h"
#include "anemone/session.h"
#include "anemone/surfaces.h"
#include "anemone/trainer.h"
#include "anemone/version.h"
#include "base/annotated.h"
#include "base/printable.h"
#include "engine/formats/parse_json.h"
#include "engine/target.h"
#include "engine/target_names.h"
#include "partitioner/plan_diff.h"
#include "provider/new_file.h"
#include "provider/programs/program_diff.h"
#include "provider/sampling.h"
#include "provider/settings.h"
#include "python/interrupt.h"
#include "python/values.h"

namespace anemone {
namespace {

// With `rows`, an adapter for each row of the batch.
nb::dict Run(const Session& session, const nb::dict& values, const std::string& adapter,
             const std::vector<std::string>& rows) {
  std::map<std::string, OnnxValue> inputs;
  for (const auto& [name, value] : values) {
    inputs.emplace(NameFromPython(name), FromPython(value));
  }
  auto outputs = Unlocked([&] {
    return rows.empty() ? session.RunValues(inputs, adapter) : session.RunRows(inputs, rows);
  });
  nb::dict made;
  for (const PortInfo& port : session.outputs()) {
    made[StrOfName(port.name)] = ToPython(std::move(outputs.at(port.name)));
  }
  return made;
}

// The bits of fp16 numbers in the memory of a port, which keep `surfaces` alive.
nb::object BitsOf(nb::handle surfaces, const std::string& port) {
  const auto view = nb::cast<const Surfaces&>(surfaces).View(port);
  if (!view.ok()) Raise(view.status());
  std::vector<size_t> sizes(view->dims.begin(), view->dims.end());
  std::vector<int64_t> steps = view->strides;
  for (int64_t& step : steps) step /= static_cast<int64_t>(sizeof(uint16_t));
  return nb::cast(nb::ndarray<nb::numpy, uint16_t>(view->data, sizes.size(), sizes.data(), surfaces,
                                                   steps.data()));
}

nb::dict RunSurfaces(const Surfaces& surfaces, const nb::dict& values) {
  std::map<std::string, OnnxValue> inputs;
  for (const auto& [name, value] : values) {
    inputs.emplace(NameFromPython(name), FromPython(value));
  }
  auto outputs = Unlocked([&] { return surfaces.Run(inputs); });
  nb::dict made;
  for (auto& [name, value] : outputs) made[StrOfName(name)] = ToPython(std::move(value));
  return made;
}

void UpdateWeights(Session& session, const nb::dict& arrays) {
  std::map<std::string, Tensor> weights;
  for (const auto& [name, array] : arrays) {
    weights.emplace(NameFromPython(name), TensorFromPython(array));
  }
  Done([&] { return session.UpdateWeights(weights); });
}

absl::string_view ViewOf(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

const char* NameOf(PortKind kind) {
  switch (kind) {
    case PortKind::kTensor:
      return "tensor";
    case PortKind::kSequence:
      return "sequence";
    case PortKind::kOptional:
      return "optional";
    case PortKind::kMap:
      return "map";
    default:
      return "other";
  }
}

nb::list PortsOf(const std::vector<PortInfo>& ports) {
  nb::list made;
  for (const PortInfo& port : ports) {
    made.append(nb::make_tuple(StrOfName(port.name), std::string(DataTypeName(port.type)),
                               nb::tuple(nb::cast(port.dims)), port.has_default, NameOf(port.kind),
                               port.type_text));
  }
  return made;
}

// Stores one keyword of a function. Raises TypeError if the function has no such keyword, and the
// exception of Raise() if the value is wrong.
void SetSetting(Settings& settings, unsigned function, const std::string& name,
                const std::string& value) {
  const Setting* setting = FindSetting(name);
  if (setting == nullptr || (setting->entries & function) == 0) {
    std::vector<std::string> known;
    for (const Setting& other : AllSettings()) {
      if ((other.entries & function) != 0) known.emplace_back(other.name);
    }
    PyErr_SetString(PyExc_TypeError, absl::StrCat("unknown keyword '", name, "'; valid: target, ",
                                                  absl::StrJoin(known, ", "))
                                         .c_str());
    throw nb::python_error();
  }
  const absl::Status status = setting->store(settings, value);
  if (!status.ok()) Raise(Annotated(status, absl::StrCat(name, " '", value, "'")));
}

void AddSettings(nb::module_& module) {
  module.attr("CHECK") = static_cast<unsigned>(kPythonCheck);
  module.attr("SESSION") = static_cast<unsigned>(kPythonSession);
  nb::class_<Settings>(module, "Settings")
      .def(nb::init<>())
      .def_rw("target", &Settings::target)
      .def("use_library", UseInstalledLibrary)
      .def("set", SetSetting);
}

void AddSession(nb::module_& module) {
  nb::class_<Session>(module, "Session")
      .def_prop_ro("inputs", [](const Session& s) { return PortsOf(s.inputs()); })
      .def_prop_ro("outputs", [](const Session& s) { return PortsOf(s.outputs()); })
      .def_prop_ro("input_names",
                   [](const Session& s) {
                     nb::set made;
                     for (const PortInfo& port : s.inputs()) made.add(StrOfName(port.name));
                     return made;
                   })
      .def_prop_ro("constant_inputs",
                   [](const Session& s) {
                     nb::list made;
                     for (const std::string& name : s.ConstantInputs())
                       made.append(StrOfName(name));
                     return made;
                   })
      .def("run", Run)
      .def("surfaces",
           [](const Session& s, const std::vector<std::string>& ports) {
             return Unlocked([&] { return s.MakeSurfaces(ports); });
           })
      .def("update_weights", UpdateWeights)
      .def("state_pairs", &Session::StatePairs)
      .def("state",
           [](const Session& s, const std::string& input) {
             return ArrayOf(Unlocked([&] { return s.ReadState(input); }));
           })
      .def("write_state",
           [](Session& s, const std::string& input, nb::handle array) {
             const Tensor value = TensorFromPython(array);
             Done([&] { return s.WriteState(input, value); });
           })
      .def("reset_state",
           [](Session& s) {
             const nb::gil_scoped_release release;
             s.ResetState();
           })
      .def("fork", &Session::Fork)
      .def("plan_text", [](const Session& s, bool every_node,
                           int width) { return StrOf(s.PlanText(every_node, width)); })
      .def("plan_json", &Session::PlanJson)
      .def("run_warnings", [](const Session& s) {
        const std::vector<std::string> texts = [&] {
          const nb::gil_scoped_release release;
          return s.RunWarnings();
        }();
        nb::list made;
        for (const std::string& text : texts) made.append(StrOf(text));
        return made;
      });
  nb::class_<Surfaces>(module, "Surfaces").def("bits", BitsOf).def("run", RunSurfaces);
  module.def("load", [](const nb::bytes& path, const Settings& settings) {
    return Unlocked([&] { return Session::Load(std::string(ViewOf(path)), settings); });
  });
  module.def("load_bytes", [](const nb::bytes& model, const Settings& settings) {
    return Unlocked([&] { return Session::LoadBytes(ViewOf(model), settings); });
  });
}

void AddGenerator(nb::module_& module) {
  nb::class_<Generator>(module, "Generator")
      .def("start",
           [](Generator& g, const std::vector<int64_t>& tokens, double temperature, int64_t top_k,
              double top_p, double repetition_penalty, uint64_t seed) {
             const Sampling sampling = {temperature, top_k, top_p, repetition_penalty, seed};
             Done([&] { return g.Start(tokens, sampling); });
           })
      .def("next", [](Generator& g) { return Unlocked([&] { return g.Next(); }); })
      .def("start_batch",
           [](Generator& g, const std::vector<std::vector<int64_t>>& prompts, double temperature,
              int64_t top_k, double top_p, double repetition_penalty, uint64_t seed) {
             const Sampling sampling = {temperature, top_k, top_p, repetition_penalty, seed};
             Done([&] { return g.StartBatch(prompts, sampling); });
           })
      .def("next_batch", [](Generator& g) { return Unlocked([&] { return g.NextBatch(); }); })
      .def("takes_batches", &Generator::TakesBatches)
      .def("growth_refusal", [](const Generator& g) { return StrOf(g.session().GrowthRefusal()); })
      .def("logits", [](Generator& g) { return Unlocked([&] { return g.Logits(); }); })
      .def("fork", &Generator::Fork)
      .def("plan_text",
           [](const Generator& g, int width) { return StrOf(g.session().PlanText(false, width)); });
  module.def("token_shares",
             [](const std::vector<float>& logits, const std::vector<int64_t>& seen,
                double temperature, int64_t top_k, double top_p, double repetition_penalty) {
               return TokenShares(logits, {temperature, top_k, top_p, repetition_penalty, 0}, seen);
             });
  module.def("load_generator", [](const nb::bytes& path, const Settings& settings) {
    return Unlocked([&] { return Generator::Load(std::string(ViewOf(path)), settings); });
  });
  module.def("load_generator_bytes", [](const nb::bytes& model, const Settings& settings) {
    return Unlocked([&] { return Generator::LoadBytes(ViewOf(model), settings); });
  });
}

void AddCheck(nb::module_& module) {
  nb::class_<CheckReport>(module, "CheckReport")
      .def("text",
           [](const CheckReport& report, bool every_node, int width) {
             return StrOf(report.Text(every_node, /*colour=*/false, width));
           })
      .def("json", &CheckReport::Json)
      .def("html", [](const CheckReport& report) {
        const std::string html = [&] {
          const nb::gil_scoped_release release;
          return report.Html();
        }();
        return StrOf(html);
      });
  module.def("check", [](const nb::bytes& path, const Settings& settings) {
    return Unlocked([&] { return Check(std::string(ViewOf(path)), settings); });
  });
  module.def("check_bytes", [](const nb::bytes& model, const Settings& settings) {
    return Unlocked([&] { return CheckBytes(ViewOf(model), settings); });
  });
}

void AddDiff(nb::module_& module) {
  nb::class_<PlanDiff>(module, "PlanDiff")
      .def("text", [](const PlanDiff& diff, bool every_node,
                      int width) { return StrOf(DiffText(diff, width, every_node)); })
      .def("json", [](const PlanDiff& diff) { return JsonText(DiffJson(diff)); });
  module.def("diff", [](const std::string& path_a, const std::string& plan_a,
                        const std::string& path_b, const std::string& plan_b) {
    return Unlocked([&] {
      const auto parsed = [](const std::string& plan) { return ParseJson(plan).value_or(Json()); };
      return DiffPlans({path_a, parsed(plan_a)}, {path_b, parsed(plan_b)});
    });
  });
  nb::class_<ProgramDiff>(module, "ProgramDiff")
      .def("text", [](const ProgramDiff& diff, bool every_item,
                      int width) { return StrOf(ProgramDiffText(diff, width, every_item)); })
      .def("json", [](const ProgramDiff& diff) { return JsonText(ProgramDiffJson(diff)); });
  module.def("is_program", [](const nb::bytes& path) {
    return KindOfProgram(std::string(ViewOf(path))).has_value();
  });
  module.def("diff_programs", [](const nb::bytes& a, const nb::bytes& b) {
    return Unlocked([&] { return DiffPrograms(std::string(ViewOf(a)), std::string(ViewOf(b))); });
  });
}

// Notes of a checkpoint.
using Notes = std::map<std::string, std::string>;

double StepOf(Trainer& trainer, const nb::dict& values) {
  std::map<std::string, Tensor> inputs;
  for (const auto& [name, value] : values) {
    inputs.emplace(NameFromPython(name), TensorFromPython(value));
  }
  return Unlocked([&] { return trainer.Step(inputs); });
}

void AddTraining(nb::module_& module) {
  using Options = TrainingOptions;
  nb::class_<Options>(module, "TrainingOptions")
      .def(nb::init<>())
      .def_rw("loss", &Options::loss)
      .def_rw("optimizer", &Options::optimizer)
      .def_rw("learning_rate", &Options::learning_rate)
      .def_rw("momentum", &Options::momentum)
      .def_rw("beta1", &Options::beta1)
      .def_rw("beta2", &Options::beta2)
      .def_rw("epsilon", &Options::epsilon)
      .def_rw("weight_decay", &Options::weight_decay)
      .def_rw("batch", &Options::batch)
      .def_rw("train_only", &Options::train_only)
      .def_rw("loss_scale", &Options::loss_scale)
      .def_rw("accumulate", &Options::accumulate)
      .def_rw("clip", &Options::clip)
      .def_rw("sanitize", &Options::sanitize)
      .def_rw("pair", &Options::pair)
      .def_rw("update_on_cpu", &Options::update_on_cpu)
      .def("add_target", [](Options& options, const std::string& name, const std::string& type,
                            const std::vector<int64_t>& dims) {
        options.targets[name] = {TypeNamed(type), dims};
      });
  nb::class_<Trainer>(module, "Trainer")
      .def_prop_ro("inputs", [](const Trainer& t) { return PortsOf(t.inputs()); })
      .def_prop_ro("weights", &Trainer::weights)
      .def_prop_ro("runs", &Trainer::runs)
      .def_prop_ro("gradient_warning", &Trainer::GradientWarning)
      .def("step", StepOf)
      .def("set_learning_rate",
           [](Trainer& t, double rate) { Done([&] { return t.set_learning_rate(rate); }); })
      .def("weight",
           [](const Trainer& t, const std::string& name) {
             return ArrayOf(Unlocked([&] { return t.Weight(name); }));
           })
      .def("save_checkpoint",
           [](const Trainer& t, const nb::bytes& path, const Notes& notes) {
             Done([&] { return t.SaveCheckpoint(std::string(ViewOf(path)), notes); });
           })
      .def("load_checkpoint",
           [](Trainer& t, const nb::bytes& path) {
             return Unlocked([&] { return t.LoadCheckpoint(std::string(ViewOf(path))); });
           })
      .def("model",
           [](const Trainer& t) {
             const std::string bytes = Unlocked([&] { return t.ModelBytes(); });
             return nb::bytes(bytes.data(), bytes.size());
           })
      .def("step_model",
           [](const Trainer& t) { return nb::bytes(t.StepBytes().data(), t.StepBytes().size()); })
      .def("plan_text", [](const Trainer& t, bool every_node, int width) {
        return StrOf(t.PlanText(every_node, width));
      });
  module.def("train", [](const nb::bytes& path, const Options& options, const Settings& settings) {
    return Unlocked([&] { return Trainer::Load(std::string(ViewOf(path)), options, settings); });
  });
  module.def(
      "train_bytes", [](const nb::bytes& model, const Options& options, const Settings& settings) {
        return Unlocked([&] { return Trainer::LoadBytes(ViewOf(model), options, settings); });
      });
}

void WriteFile(const nb::bytes& path, const nb::bytes& contents) {
  const std::string name(ViewOf(path));
  if (name.find('\0') != std::string::npos) {
    Raise(absl::InvalidArgumentError("a file's name contains a zero byte"));
  }
  const absl::Status written = [&] {
    const nb::gil_scoped_release release;
    return WriteUserFile(name, {ViewOf(contents)});
  }();
  if (written.ok()) return;
  if (absl::IsNotFound(written) || absl::IsPermissionDenied(written)) Raise(written);
  PyErr_SetString(PyExc_OSError, Printable(written.message()).c_str());  // such as a full disk
  throw nb::python_error();
}

// The error message if there is no target with this name; nullopt if there is.
std::optional<std::string> TargetProblem(const std::string& name) {
  const auto target = FindTarget(name);
  if (target.ok()) return std::nullopt;
  return Printable(target.status().message());
}

// "M1"; "M9 (unreleased code name, limits not published)". The name itself if there is no such
// target.
std::string TargetLabelOf(const std::string& name) {
  const auto target = FindTarget(name);
  return target.ok() ? TargetLabel(**target) : name;
}

// "h13" for "m1". The name itself if there is no such target.
std::string TargetNameOf(const std::string& name) {
  const auto target = FindTarget(name);
  return target.ok() ? std::string((*target)->option_name()) : name;
}

}  // namespace
}  // namespace anemone

NB_MODULE(_anemone, module) {
  module.attr("__version__") = anemone::kVersion;
  anemone::Interrupt::SetUp();
  module.def("write_file", anemone::WriteFile);
  module.def("target_problem", anemone::TargetProblem);
  module.def("target_label", anemone::TargetLabelOf);
  module.def("target_name", anemone::TargetNameOf);
  anemone::AddSettings(module);
  anemone::AddSession(module);
  anemone::AddTraining(module);
  anemone::AddGenerator(module);
  anemone::AddCheck(module);
  anemone::AddDiff(module);
}
