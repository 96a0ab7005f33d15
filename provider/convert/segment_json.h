// provider/convert/segment_json.h: the parts that the manifests of all formats have in common.
#ifndef ANEMONE_PROVIDER_CONVERT_SEGMENT_JSON_H_
#define ANEMONE_PROVIDER_CONVERT_SEGMENT_JSON_H_

#include <functional>
#include <vector>

#include "engine/field.h"
#include "partitioner/plan.h"

namespace anemone {

// [{"name", "dtype", "shape"}]; the shape is null if it is not known.
Json PortsJson(const Graph& graph, const std::vector<ValueId>& values);

// Why the nodes of a CPU segment stay there; each reason once for each operator. Entries for which
// `is_left_out` is true are not asked.
Json CpuReasonsJson(const Model& model, const Plan& plan, int segment,
                    const std::function<bool(const PlanEntry&)>& is_left_out = nullptr);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_CONVERT_SEGMENT_JSON_H_
