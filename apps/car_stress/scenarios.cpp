// SPDX-License-Identifier: Apache-2.0
#include "car_stress/scenarios.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace car::stress {
namespace {

// In the order of likelihood times harm.
constexpr std::array kScenarios{
    Scenario{
        "B01", "buffers that cannot be exported: other allocators, pinned, managed, stack",
        "host, cuda", "2, 4",
        "what cannot be mapped goes through the arena, on all ranks when on one; exact. Memory "
        "of another GPU is not run: needs two GPUs",
        "registry_test scenarios_test cuda_test", ""},
    Scenario{"B02", "one rank is killed in mid-collective, the rest wait for ever", "host, cuda",
             "4", "the others are told within a second, by name; a stop of 2 s does no harm",
             "death.kill death.exit death.stop_and_continue cli.scenarios", ""},
    Scenario{"B03", "rare hang in long runs of small back-to-back calls", "host, cuda", "2, 4, 8",
             "exact, no hang, also where the counters wrap", "protocol_test",
             "--cycles 20 --calls-per-cycle 5000 --max-bytes 64K --comms 1 --graphs 1 --checkpoint "
             "none"},
    Scenario{"B04", "input overwritten right after the call, while a slow peer still reads it",
             "host, cuda", "4, 2, 8", "exact; the calls return when the input may be written",
             "fault_test",
             "--cycles 15 --max-bytes 8M --checkpoint none --fault "
             "after_read@1:delay=1,before_publish@0:delay=1"},
    Scenario{"B05", "old graph replayed after resume, mappings now at other addresses",
             "host, cuda", "4, 2",
             "exact, with the old addresses taken in every cycle; graphs are not made anew",
             "graph_replay_test cuda_test",
             "--cycles 100 --graphs 16 --calls-per-cycle 1 --checkpoint fake"},
    Scenario{"B06", "suspend or resume called by only some ranks", "host, cuda", "2, 4",
             "an error by the deadline on all that are there, which names who is missing or which "
             "call it made; late within the deadline is no error",
             "fault_test scenarios_test fuzz_test", ""},
    Scenario{"B08", "suspend or resume returns before the peers have finished their half",
             "host, cuda", "4, 2",
             "exact; when suspend returns anywhere, nothing is mapped in any process", "fault_test",
             "--cycles 60 --max-bytes 64K --checkpoint fake --fault "
             "resume_before_open@1:delay=20,suspend_before_close@0:delay=20"},
    Scenario{"B10", "ranks capture different numbers of all-reduces", "host, cuda", "2, 4",
             "an error on all ranks at the first call that differs, nothing is written, and the "
             "communicator goes on; one buffer for several calls is fine",
             "graph_test scenarios_test", ""},
    Scenario{"B12", "one communicator used from two streams or two threads at once", "host, cuda",
             "6, 2, 4", "exact: calls of one communicator are put in order",
             "communicators_test scenarios_test cuda_test", ""},
    Scenario{"B13", "/dev/shm too small: SIGBUS, or an error that explains nothing", "host", "4",
             "exact: no name in /dev/shm is used, and all memory is reserved at create",
             "cli.namespaces", ""},
    Scenario{"B14", "segments left in /dev/shm after Ctrl-C, kill or crash", "host", "4",
             "nothing stays, whatever ends the job", "death.left_behind cli.scenarios", ""},
    Scenario{"B15", "destructors, double close, use after close, after MPI_Finalize", "host, cuda",
             "4, 6", "no hang, no crash; destructors are local; errors are told",
             "ending communicators_test lifecycle_table_test", ""},
    Scenario{
        "B17", "count, type or operation differ between ranks", "host, cuda", "2, 4",
        "LIBRUN_CHECK=1: an error on all ranks with what each passed, nothing written, and the "
        "next call is right. Without it: nothing outside the buffers, no hang beyond the "
        "deadline",
        "arguments_test scenarios_test", "--cycles 300 --calls-per-cycle 2 --max-bytes 64K"},
    Scenario{"B18", "two slices of one allocation, the same buffer twice, two communicators",
             "host, cuda", "2, 4, 8",
             "exact at every step; one mapping a peer and allocation, none at the end",
             "registry_test cuda_test", "--cycles 100 --comms 6 --checkpoint fake"},
    Scenario{
        "B21", "graph launched before registration ended; temporaries freed in capture", "cuda",
        "2",
        "graphs hold no addresses of peers and need no registration; a call that is refused is "
        "not recorded, and the next capture is right. Memory that is freed while a graph has it "
        "is the program's to keep, as with any CUDA graph",
        "graph_test cuda_test", ""},
    Scenario{
        "B22", "handles and table slots leak over many captures; table overflows", "host, cuda",
        "2, 4",
        "flat over thousands of captures and of calls larger than the arena; a full table says "
        "used and limit",
        "graph_test registry_test scenarios_test",
        "--cycles 400 --graphs 32 --calls-per-cycle 1 --max-bytes 64K"},
    Scenario{"B23", "ranks do not hold the same bits", "host, cuda", "8, 2, 3, 5",
             "the same hash on all ranks and in all runs, equal to the sum in rank order",
             "all_reduce_test", "--cycles 60 --graphs 1"},
    Scenario{"B24", "16-bit partial sums rounded or overflowed", "host, cuda", "2, 3, 4, 5, 8",
             "summed in fp32, rounded once", "special_values_test", ""},
    Scenario{"B25", "data that look like \"not arrived yet\"", "host, cuda", "2, 3, 4, 5, 8",
             "any bytes are data: no hang, exact", "special_values_test", ""},
    Scenario{"B28", "pointers that are not aligned", "host, cuda", "2, 3, 4, 5, 8",
             "exact at every element offset, other ones on each rank; not aligned to the type: an "
             "error on all ranks",
             "all_reduce_test arguments_test cuda_test", ""},
    Scenario{"B30", "signals zeroed after the handles were exchanged", "host, cuda", "4, 2",
             "the first call after create and resume is exact, with any rank late", "fault_test",
             "--cycles 200 --calls-per-cycle 1 --graphs 0 --max-bytes 4K --checkpoint fake --fault "
             "create_after_exchange@1:delay=20,resume_after_open@0:delay=20"},
    Scenario{"B31", "more ranks than cores; bad binding", "host", "8",
             "ends in time on one core too; a rank that waits gives way", "cli.scenarios",
             "--cycles 40 --max-bytes 64K"},
    Scenario{"B32", "several ranks on one GPU, and a noisy neighbour on it", "cuda", "2, 4, 8",
             "exact under MPS, within the blocks that fit. A neighbour that fills the GPU is not "
             "run: it is the deadline's to lengthen",
             "", "--cycles 50 --max-bytes 4M --checkpoint fake"},
    Scenario{"B33", "communicators over part of the ranks upset later ones", "host, cuda", "6, 4",
             "exact beside the program's own messages; only members take part",
             "communicators_test", "--cycles 100 --comms 12 --checkpoint fake", 3},
    Scenario{"B35", "exporter frees while a peer still has it mapped", "host, cuda", "4, 2",
             "all unmap before anybody frees, with one rank late; a failure inside is told to all",
             "fault_test scenarios_test",
             "--cycles 100 --comms 8 --checkpoint fake --max-bytes 64K --fault "
             "close_before_agree@1:delay=20"},
    Scenario{"B37", "suspend and resume repeated, nested, out of order; many cycles", "host, cuda",
             "4, 2",
             "repeats do nothing, on all ranks; a failed resume is terminal and close works; what "
             "is held stays the same",
             "lifecycle_test lifecycle_table_test fault_test registry_test scenarios_test",
             "--cycles 500 --calls-per-cycle 1 --comms 2 --max-bytes 64K --checkpoint fake"},
    Scenario{"B38", "each rank has its own CUDA_VISIBLE_DEVICES", "cuda", "2",
             "GPUs are compared by UUID, and one that cannot reach a peer's names both. Not run: "
             "needs two GPUs",
             "", ""},
    Scenario{"B40", "ranks in different containers or nodes", "host, cuda", "4",
             "exact across PID, IPC, UTS and mount namespaces; ranks on two machines: an error on "
             "all that says what to do. On GPUs not run",
             "cli.namespaces", ""},
    Scenario{"B43", "more than 2^31 elements or bytes", "host, cuda", "2",
             "exact around 2^31 and at both ends; impossible counts: an error on all ranks",
             "big_count arguments_test", ""},
    Scenario{"B44", "in place, and partly overlapping buffers", "host, cuda", "2, 3, 4, 5, 8",
             "in place exact, chained and on some ranks only; overlap in part: an error on all "
             "ranks, before anything is written",
             "all_reduce_test arguments_test", ""},
    Scenario{"B45", "mpirun started N separate one-rank jobs and nobody noticed", "host", "8, 1",
             "the tools say so and end with 3; alone they say that nothing is reduced",
             "cli.car_bench", ""},
    Scenario{"B47", "benchmark reads sizes wrongly, clamps silently, exits 0 on wrong data", "host",
             "2, 4", "each bad value is named, exit 2; wrong data show, exit 1",
             "cli.car_bench cli.car_stress", ""},
    Scenario{"B48", "NaN, Inf and integer wrap-around", "host, cuda", "2, 3, 4, 5, 8",
             "NaN wins whichever rank holds it; integers wrap", "special_values_test", ""},
    Scenario{"B51", "fork and system() while the communicator lives", "host, cuda", "4, 2",
             "calls stay exact; a child is turned away, harms nothing and inherits no link; "
             "descriptors close on exec",
             "lifecycle_test scenarios_test link_test", ""},
    Scenario{"B52", "profilers, sanitizers and serialised launches", "cuda", "2",
             "LIBRUN_ALGO=stepped ends under compute-sanitizer without waiting in a kernel "
             "(scripts/gpu_test.sh); deadlines can be lengthened. ncu is not run",
             "", "--cycles 20 --max-bytes 64K --algo stepped"},
};

std::string preset_command(const Scenario& scenario) {
  if (!*scenario.options) return {};
  const std::string_view np = scenario.np;
  return fmt::format("mpirun -np {} car_stress --scenario {}", np.substr(0, np.find(',')),
                     scenario.id);
}

/// For ctest -R.
std::string any_of(std::string tests) {
  std::ranges::replace(tests, ' ', '|');
  return tests;
}

std::string markdown() {
  std::string text =
      "| | scenario | backends | np | outcome | tests (`ctest -R`) | `car_stress --scenario` |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const Scenario& one : kScenarios)
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", one.id, one.what, one.backends,
                        one.np, one.outcome, one.tests, *one.options ? one.id : "");
  return text;
}

std::string plain() {
  std::string text;
  for (const Scenario& one : kScenarios) {
    text += fmt::format("{}  {} ({}; np {})\n", one.id, one.what, one.backends, one.np);
    if (*one.options)
      text += fmt::format("     {}\n       = {}\n", preset_command(one), one.options);
    if (*one.tests) text += fmt::format("     ctest -R '{}'\n", any_of(one.tests));
    if (!*one.options && !*one.tests) text += fmt::format("     {}\n", one.outcome);
  }
  return text;
}

}  // namespace

std::span<const Scenario> scenarios() { return kScenarios; }

const Scenario& scenario_of(std::string_view id) {
  const auto found = std::ranges::find(kScenarios, id, &Scenario::id);
  if (found == kScenarios.end())
    throw std::invalid_argument(fmt::format("\"{}\" is none of --list-scenarios", id));
  if (!*found->options)
    throw std::invalid_argument(fmt::format(
        "{} has no preset: {}", id,
        *found->tests ? fmt::format("it is ctest -R '{}'", any_of(found->tests)) : found->outcome));
  return *found;
}

std::string scenario_list(std::string_view format) {
  if (format == "text") return plain();
  if (format == "markdown") return markdown();
  throw std::invalid_argument(fmt::format("\"{}\" is not text or markdown", format));
}

}  // namespace car::stress
