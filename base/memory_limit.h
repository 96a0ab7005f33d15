// base/memory_limit.h: Settings::memory_limit, of what is made while a model is read and planned:
// tensors (base/tensor.cc), what ONNX Runtime computes of constants, and lists of numbers that grow
// with the model; and of what a run makes outside the engine: tensors, and what ONNX Runtime takes
// (fallback/limited_allocator.h). They take their share before they are allocated.
//
//   const MemoryLimit limit(settings.memory_limit);  // of what this thread does while it exists
//   const WorkPlace place([&] { return "node '" + node.name + "'"; });  // for the message
//   Tensor t = Tensor::Zeros(DataType::kFloat, {1024});
//
// The last line throws MemoryLimitReached if less is left, which Guarded() catches.
//
// The limit belongs to a thread. Work that another thread may do takes it along:
//
//   arena.execute(WithMemoryLimit([&] { Work(); }));
//
// What programs need is in an estimate instead (provider/memory_budget.h).
#ifndef ANEMONE_BASE_MEMORY_LIMIT_H_
#define ANEMONE_BASE_MEMORY_LIMIT_H_

#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>

namespace anemone {

// what(): "node 'pad': needs 2 GiB ..., the memory limit is 1 GiB; raise the limit ...".
class MemoryLimitReached : public std::bad_alloc {
 public:
  explicit MemoryLimitReached(std::string what)
      : what_(std::make_shared<const std::string>(std::move(what))) {}
  const char* what() const noexcept override { return what_->c_str(); }

 private:
  std::shared_ptr<const std::string> what_;  // a copy of an exception must not throw
};

// Limits what this thread takes while it exists, in bytes. 0: no limit. Inside another limit, only
// that one counts. `work`, for messages, outlives the limit.
class MemoryLimit {
 public:
  explicit MemoryLimit(int64_t bytes, const char* work = "planning");
  ~MemoryLimit();
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

  // Of what this thread does; null: it has no limit.
  static MemoryLimit* Current();

  // While it exists, what this thread takes counts for `limit`, which may be null.
  class Scope {
   public:
    explicit Scope(MemoryLimit* limit);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    MemoryLimit* const before_;
  };

  // While it exists, what this thread takes does not count.
  class Pause : public Scope {
   public:
    Pause() : Scope(nullptr) {}
  };

 private:
  friend std::shared_ptr<const void> TakeAnyMemory(int64_t bytes);
  struct State;
  std::shared_ptr<State> state_;  // what was taken may be released later; null: no limit
};

// Takes `bytes` of this thread's limit until all copies of the result are gone. Null if there is no
// limit, or for less than a page. MemoryLimitReached: less is left.
std::shared_ptr<const void> TakeMemory(int64_t bytes);
// The same, also for less than a page: for what there may be many of.
std::shared_ptr<const void> TakeAnyMemory(int64_t bytes);

// Returns a function that calls `work` with the limit that this thread has now.
template <class Work>
auto WithMemoryLimit(Work work) {
  return [work = std::move(work), limit = MemoryLimit::Current()] {
    const MemoryLimit::Scope scope(limit);
    return work();
  };
}

// Where a thread is, for messages.
class AnyWorkPlace {
 public:
  AnyWorkPlace(const AnyWorkPlace&) = delete;
  AnyWorkPlace& operator=(const AnyWorkPlace&) = delete;
  virtual ~AnyWorkPlace();
  static std::string Current();  // of this thread; "": it is not known

 protected:
  AnyWorkPlace();

 private:
  virtual std::string Text() const = 0;
  AnyWorkPlace* const around_;
};

// While it exists, `place` tells where this thread is. It is called only for a message.
template <class Place>
class WorkPlace : public AnyWorkPlace {
 public:
  explicit WorkPlace(Place place) : place_(std::move(place)) {}

 private:
  std::string Text() const override { return place_(); }
  const Place place_;
};

}  // namespace anemone

#endif  // ANEMONE_BASE_MEMORY_LIMIT_H_
