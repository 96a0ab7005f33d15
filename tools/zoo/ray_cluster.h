// tools/zoo/ray_cluster.h: gives the models of a zoo to the workers of a Ray cluster. A program of
// the Python package drives the cluster (python/onnxruntime_ep_ane/_zoo_ray.py says how they talk).
#ifndef ANEMONE_TOOLS_ZOO_RAY_CLUSTER_H_
#define ANEMONE_TOOLS_ZOO_RAY_CLUSTER_H_

#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/formats/json.h"
#include "tools/zoo/job.h"
#include "tools/zoo/sources.h"

namespace anemone {

class RayCluster {
 public:
  // Starts the program. `address`: of a cluster, or "" for one of this machine that ends with the
  // program. `jobs`: the most models at a time; 0 for as many as the cluster has processors.
  static absl::StatusOr<std::unique_ptr<RayCluster>> Start(const ZooWork& work,
                                                           const std::string& address, int jobs);
  // Ends the program, and with it what still runs.
  ~RayCluster();
  RayCluster(const RayCluster&) = delete;
  RayCluster& operator=(const RayCluster&) = delete;

  // Sends one model. `line` is its line of results.jsonl without results: NewLine().
  absl::Status Send(const ZooModel& model, Json line);
  // Waits for the next model that is finished, and returns its line. Errors: kFailedPrecondition
  // (Python, its package or Ray is missing, or another version), kInternal.
  absl::StatusOr<Json> Next();

 private:
  using File = std::unique_ptr<FILE, int (*)(FILE*)>;
  RayCluster(pid_t id, int socket, std::string python, File err)
      : id_(id), socket_(socket), python_(std::move(python)), err_(std::move(err)) {}

  absl::Status SendLine(const Json& message);
  absl::StatusOr<Json> ReceiveLine();
  absl::Status Ended() const;

  pid_t id_;
  int socket_;
  std::string python_;
  File err_;
  std::string received_;     // and not read yet
  std::vector<Json> lines_;  // of the models, in the order they were sent
};

}  // namespace anemone

#endif  // ANEMONE_TOOLS_ZOO_RAY_CLUSTER_H_
