// The smallest device profiler for Kineto: a simulated "neuron" device reports its kernels through it.
// rec(...) may be called from any thread while a trace runs; the profiler pushes a correlation id around every framework
// op on its thread, which ties the device event to that op. No claim about real Trainium hardware is made.
#define USE_KINETO 1
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <atomic>
#include <mutex>
#include <thread>
#include <output_base.h>
#include <libkineto.h>
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>
using namespace libkineto;
namespace {
struct Ev { std::string name; int64_t t0, t1; int kind, stream; int32_t ext, corr, tid; std::string meta; };
std::mutex mu; std::vector<Ev> evs; std::atomic<bool> active{false}; std::atomic<int32_t> next_corr{1};
thread_local std::vector<uint64_t> ext_stack;
const std::set<ActivityType> kTypes{ActivityType::CONCURRENT_KERNEL, ActivityType::GPU_MEMCPY, ActivityType::PRIVATEUSE1_RUNTIME};
class Session : public IActivityProfilerSession {
 public:
  void start() override { std::lock_guard<std::mutex> g(mu); evs.clear(); t0 = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count(); active = true; status_ = TraceStatus::RECORDING; }
  void stop() override { active = false; status_ = TraceStatus::PROCESSING; }
  std::vector<std::string> errors() override { return {}; }
  void processTrace(ActivityLogger& lg) override { processTrace(lg, {}, 0, 0); }
  void processTrace(ActivityLogger& lg, getLinkedActivityCallback link, int64_t, int64_t) override {
    std::lock_guard<std::mutex> g(mu);
    buf = std::make_unique<CpuTraceBuffer>(); buf->span = TraceSpan(t0, t0, "neuron"); buf->gpuOpCount = (int)evs.size();
    for (auto& e : evs) {
      auto type = e.kind == 0 ? ActivityType::CONCURRENT_KERNEL : e.kind == 1 ? ActivityType::GPU_MEMCPY : ActivityType::PRIVATEUSE1_RUNTIME;
      buf->emplace_activity(buf->span, type, e.name);
      auto& a = *buf->activities.back();
      a.startTime = e.t0; a.endTime = e.t1; a.id = e.corr; a.threadId = e.tid;
      a.device = e.kind == 2 ? (int32_t)getpid() : 0; a.resource = e.kind == 2 ? e.tid : e.stream;
      a.flow.id = e.corr; a.flow.type = kLinkAsyncCpuGpu; a.flow.start = e.kind == 2;
      if (link && e.ext) a.linked = link(e.ext);
      a.addMetadata("correlation", e.corr); a.addMetadata("stream", e.stream);
      if (!e.meta.empty()) a.addMetadataQuoted("neff", e.meta);
      lg.handleGenericActivity(a);
    }
  }
  std::unique_ptr<DeviceInfo> getDeviceInfo() override { return std::make_unique<DeviceInfo>(DeviceInfo{0, 5000000, "neuron", "NeuronCore 0"}); }
  std::vector<ResourceInfo> getResourceInfos() override { return {{0, 0, 0, "engine 0"}, {1, 1, 0, "DMA queue 1"}}; }
  std::unique_ptr<CpuTraceBuffer> getTraceBuffer() override { return std::move(buf); }
  void pushCorrelationId(uint64_t id) override { ext_stack.push_back(id); }
  void popCorrelationId() override { if (!ext_stack.empty()) ext_stack.pop_back(); }
 private:
  int64_t t0 = 0; std::unique_ptr<CpuTraceBuffer> buf;
};
class Profiler : public IActivityProfiler {
 public:
  const std::string& name() const override { static const std::string n = "neuron_sim"; return n; }
  const std::set<ActivityType>& availableActivities() const override { return kTypes; }
  std::unique_ptr<IActivityProfilerSession> configure(const std::set<ActivityType>& t, const Config&) override {
    for (auto x : t) if (kTypes.count(x)) return std::make_unique<Session>();
    return nullptr;
  }
  std::unique_ptr<IActivityProfilerSession> configure(int64_t, int64_t, const std::set<ActivityType>& t, const Config& c) override { return configure(t, c); }
};
}
REGISTER_PRIVATEUSE1_PROFILER(Profiler);
PYBIND11_MODULE(activity_profiler, m) {
  m.def("rec", [](std::string name, int64_t l0, int64_t l1, int64_t t0, int64_t t1, int kind, int stream, std::string meta) {
    if (!active) return 0; int c = next_corr++; int32_t ext = ext_stack.empty() ? 0 : (int32_t)ext_stack.back(); int32_t tid = libkineto::systemThreadId();
    std::lock_guard<std::mutex> g(mu);
    evs.push_back({"nrt_execute", l0, l1, 2, 0, ext, c, tid, ""}); evs.push_back({name, t0, t1, kind, stream, ext, c, tid, meta}); return c; });
  m.def("active", [] { return active.load(); });
  m.def("external_id", [] { return ext_stack.empty() ? 0 : (int64_t)ext_stack.back(); });
}
