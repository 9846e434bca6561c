"""OpenVINO's side of `msched bench nets` (timed_network.py), on CPUs, in float32, tuned for one call's time."""
import sys
import openvino
import timed_network


def open_network(model, threads, device, feeds):
    if device != "cpu":
        sys.exit("OpenVINO runs on no GPU of CUDA")
    core = openvino.Core()
    network = core.read_model(model)
    network.reshape({name: array.shape for name, array in feeds.items()})
    compiled = core.compile_model(network, "CPU", {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    for name, array in feeds.items():
        request.set_tensor(name, openvino.Tensor(array))
    return request.infer, lambda: [request.get_tensor(output).data for output in compiled.outputs]


if __name__ == "__main__":
    timed_network.serve(openvino.__version__.split("-")[0], open_network)
