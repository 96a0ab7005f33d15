#include "tools/zoo/ray_cluster.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "anemone/version.h"
#include "base/status_macros.h"
#include "engine/formats/json_keys.h"
#include "engine/formats/parse_json.h"
#include "importer/read/model_files.h"
#include "partitioner/plan_json.h"
#include "tools/compare/child_process.h"

namespace anemone {
namespace {

constexpr char kProgram[] = "from onnxruntime_ep_ane._zoo_ray import main; main()";
constexpr char kRemedy[] =
    "install the package with pip install 'onnxruntime-ep-ane[ray]', and name its Python in "
    "ANEMONE_PYTHON";

// The command of the Python that has the package: the package's own `anemone` sets it.
std::string Python() {
  const char* named = std::getenv("ANEMONE_PYTHON");
  return named == nullptr || *named == '\0' ? "python3" : named;
}

// In the child, between fork() and exec(). It has a process group of its own: Ctrl-C ends the
// command, and the program then ends the cluster in order.
[[noreturn]] void Become(char* const* words, int socket, int err) {
  setpgid(0, 0);
  dup2(socket, STDIN_FILENO);
  dup2(socket, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  execvp(words[0], words);
  _exit(kNotStarted);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RayCluster>> RayCluster::Start(const ZooWork& work,
                                                              const std::string& address,
                                                              int jobs) {
  File err(std::tmpfile(), std::fclose);
  std::array<int, 2> sockets;
  if (err == nullptr || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()) != 0) {
    return absl::ResourceExhaustedError(
        "--executor ray: cannot create a file; free some disk space");
  }
  for (const int socket : sockets) fcntl(socket, F_SETFD, FD_CLOEXEC);
  std::string python = Python(), option = "-c", program = kProgram;
  std::array<char*, 4> words = {python.data(), option.data(), program.data(), nullptr};
  const pid_t child = fork();
  if (child == 0) Become(words.data(), sockets[1], fileno(err.get()));
  close(sockets[1]);
  std::unique_ptr<RayCluster> cluster(
      new RayCluster(child, sockets[0], std::move(python), std::move(err)));
  if (child < 0) {
    return absl::ResourceExhaustedError(
        "--executor ray: a process cannot be started; end other processes, or raise ulimit -u");
  }
  ANEMONE_RETURN_IF_ERROR(cluster->SendLine({{"version", kVersion},
                                             {"address", address},
                                             {"jobs", jobs},
                                             {"folder", work.folder},
                                             {"words", work.Words()}}));
  ANEMONE_RETURN_IF_ERROR(cluster->ReceiveLine().status());  // it is ready
  return cluster;
}

RayCluster::~RayCluster() {
  close(socket_);  // tells it to end
  if (id_ < 0) return;
  while (waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

absl::Status RayCluster::Send(const ZooModel& model, Json line) {
  Json message = {{"number", lines_.size()},
                  {"path", model.path},
                  {"id", line["id"]},
                  {"files", FilesOfModel(model.path)},
                  {"entry", model.entry}};
  lines_.push_back(std::move(line));
  return SendLine(message);
}

absl::StatusOr<Json> RayCluster::Next() {
  ANEMONE_ASSIGN_OR_RETURN(const Json message, ReceiveLine());
  const Json& number = AtOrNull(message, "number");
  const Json& results = AtOrNull(message, "results");
  if (!number.is_number_unsigned() || number.get<uint64_t>() >= lines_.size() ||
      !results.is_object()) {
    return absl::InternalError("--executor ray: a message is not a result");
  }
  Json line = std::move(lines_[number.get<uint64_t>()]);
  for (const char* key : {"status", "error", "seconds", "nodes", "targets"}) {
    if (results.contains(key)) line[key] = results[key];
  }
  return line;
}

absl::Status RayCluster::SendLine(const Json& message) {
#ifdef MSG_NOSIGNAL
  constexpr int kFlags = MSG_NOSIGNAL;
#else
  constexpr int kFlags = 0;
#endif
  const std::string text = JsonText(message) + "\n";
  for (absl::string_view rest = text; !rest.empty();) {
    const ssize_t sent = send(socket_, rest.data(), rest.size(), kFlags);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return Ended();
    rest.remove_prefix(static_cast<size_t>(sent));
  }
  return absl::OkStatus();
}

absl::StatusOr<Json> RayCluster::ReceiveLine() {
  size_t searched = 0;
  for (;;) {
    const size_t end = received_.find('\n', searched);
    if (end != std::string::npos) {
      ANEMONE_ASSIGN_OR_RETURN(Json message,
                               ParseJson(absl::string_view(received_).substr(0, end)));
      received_.erase(0, end + 1);
      const std::string error = TextAt(message, "error");
      if (error.empty()) return message;
      return absl::FailedPreconditionError(absl::StrCat("--executor ray: ", error));
    }
    searched = received_.size();
    std::array<char, 1 << 16> part;
    const ssize_t count = recv(socket_, part.data(), part.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Ended();
    received_.append(part.data(), static_cast<size_t>(count));
  }
}

// The program ended, which it does not do by itself. Its last words are those of Python.
absl::Status RayCluster::Ended() const {
  std::string last;
  const std::string said = ReadAll(err_.get());
  for (absl::string_view line : absl::StrSplit(said, '\n', absl::SkipWhitespace())) {
    last = std::string(line);
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "--executor ray: ", python_, ": ", last.empty() ? "cannot be started" : last, "; ", kRemedy));
}

}  // namespace anemone
