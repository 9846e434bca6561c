"""onnxruntime's side of `msched bench nets`: a session that stays open, and runs when it is told to.
usage: peer_onnxruntime.py MODEL FOLDER THREADS DEVICE

DEVICE is cpu, or cuda: its CUDA provider then, with a CUDA graph, on inputs and outputs that stay on the first GPU.

FOLDER/INPUT.I.npy are the model's inputs, by number from 0, which FOLDER/inputs names, one a line. It writes the outputs as
FOLDER/OUTPUT.I.npy, and one JSON object: its version and how much memory it takes. Then each line on standard input, a number of
seconds, is answered by one: the median of runs in so long (at least three), and how many they were."""
import ctypes, json, statistics, sys, time
import numpy
import onnxruntime


def status(key):
    """Bytes by /proc, or None where it does not say."""
    try:
        return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(key + ":"))
    except (OSError, StopIteration, ValueError):
        return None


def forget_peak():
    """The most that was resident is counted from here on; False where that cannot be."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        return True
    except (OSError, AttributeError):
        return False


def session_of(model, threads, device):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.enable_cpu_mem_arena = options.enable_mem_pattern = True
    options.log_severity_level = 4
    if device == "cpu":
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        sys.exit("this onnxruntime has no CUDA provider: install onnxruntime-gpu")
    return onnxruntime.InferenceSession(model, options, providers=[("CUDAExecutionProvider", {"enable_cuda_graph": "1"})])


def bound(session, feeds, device):
    """What runs the session on arrays that stay on a device, and what gives the outputs."""
    binding = session.io_binding()
    for name, array in feeds.items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array, device, 0))
    for output in session.get_outputs():
        binding.bind_output(output.name, device, 0)
    return lambda: session.run_with_iobinding(binding), binding.copy_outputs_to_cpu


def rounds(run):
    """Its threads are left idle for a moment before and after, so that nobody's busy waiting takes another's time."""
    for line in sys.stdin:
        seconds, times = float(line), []
        time.sleep(0.05)
        run()
        start = time.perf_counter()
        while len(times) < 3 or time.perf_counter() - start < seconds:
            before = time.perf_counter()
            run()
            times.append(time.perf_counter() - before)
        time.sleep(0.05)
        print(json.dumps({"seconds": statistics.median(times), "runs": len(times)}), flush=True)


def main(model, folder, threads, device):
    names = open(folder + "/inputs").read().split("\n")[:-1]
    feeds = {name: numpy.load("%s/INPUT.%d.npy" % (folder, i)) for i, name in enumerate(names)}
    before = status("VmRSS")
    session = session_of(model, threads, device)
    counted = forget_peak()
    run, outputs = lambda: session.run(None, feeds), lambda: session.run(None, feeds)
    if device != "cpu":
        run, outputs = bound(session, feeds, device)
        run()
    for i, output in enumerate(outputs()):
        numpy.save("%s/OUTPUT.%d.npy" % (folder, i), output)
    after = status("VmHWM")
    peak = after - before if counted and before and after else 0
    print(json.dumps({"version": onnxruntime.__version__, "peak_bytes": peak}), flush=True)
    rounds(run)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
