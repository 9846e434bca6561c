"""onnxruntime's side of `msched bench nets` (timed_network.py).
DEVICE is cpu, or cuda: its CUDA provider then, with a CUDA graph, on inputs and outputs that stay on the first GPU."""
import sys
import onnxruntime
import timed_network


def session_of(model, threads, device):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.enable_cpu_mem_arena = options.enable_mem_pattern = True
    options.log_severity_level = 4
    # Without it rows are rounded to int8 where weights of few bits are dequantized, which no model asks for.
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "0")
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


def open_network(model, threads, device, feeds):
    session = session_of(model, threads, device)
    if device != "cpu":
        return bound(session, feeds, device)
    return (lambda: session.run(None, feeds),) * 2


if __name__ == "__main__":
    timed_network.serve(onnxruntime.__version__, open_network)
