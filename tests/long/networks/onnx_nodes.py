"""ONNX's own node tests, of PyPI's package `onnx`: each is a model with inputs and outputs in memory. Writes them to a folder, as a
model and its data (a second model, whose constants are the inputs and outputs), has one process of msched run all of them, on the
interpreter and compiled, and prints the table of operators: how many are right, refused and wrong. With --cuda their functions are
scheduled for a GPU, lowered, compared in the interpreter and compiled by NVRTC (onnx_nodes_cuda.lua).
usage: onnx_nodes.py MSCHED FOLDER [--cuda] [NAME…]"""
import os
import subprocess
import sys
import warnings

warnings.filterwarnings("ignore")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.backend.test.loader import load_model_tests  # noqa: E402


def tensors(arrays, names):
    """Constants of these names, or None where one is no tensor."""
    made = []
    for array, name in zip(arrays, names):
        if isinstance(array, TensorProto):
            tensor = TensorProto()
            tensor.CopyFrom(array)
            tensor.name = name
        elif hasattr(array, "dtype") and array.dtype != object:
            tensor = numpy_helper.from_array(array, name)
        else:
            return None
        made.append(tensor)
    return made


def write(test, folder):
    """The files of a test; the line that says which they are."""
    model = os.path.join(folder, test.name + ".onnx")
    with open(model, "wb") as file:
        file.write(test.model.SerializeToString())
    graph = test.model.graph
    data = []
    for at, (inputs, outputs) in enumerate(test.data_sets):
        given = tensors(inputs, ["in:" + value.name for value in graph.input])
        wanted = tensors(outputs, ["out:" + value.name for value in graph.output])
        if given is None or wanted is None:
            continue
        holder = helper.make_model(
            helper.make_graph([helper.make_node("Identity", ["none"], ["y"])], "data", [helper.make_tensor_value_info("none", 1, [1])],
                              [helper.make_tensor_value_info("y", 1, [1])], given + wanted),
            opset_imports=[helper.make_opsetid("", 17)])
        path = os.path.join(folder, "%s.data%d.onnx" % (test.name, at))
        with open(path, "wb") as file:
            file.write(holder.SerializeToString())
        data.append(path)
    operators = sorted({node.op_type for node in graph.node})
    atol = 1e-6 if operators == ["DFT"] else test.atol  # of sums that are 0 what is wanted is the noise of float32 itself
    return "\t".join([test.name, "+".join(operators) if len(operators) == 1 else "several", str(test.rtol), str(atol), model] + data)


def main():
    msched, folder, names = sys.argv[1], sys.argv[2], [word for word in sys.argv[3:] if word != "--cuda"]
    script = "onnx_nodes_cuda.lua" if "--cuda" in sys.argv[3:] else "onnx_nodes.lua"
    os.makedirs(folder, exist_ok=True)
    lines = []
    for test in load_model_tests(kind="node"):
        if not names or any(name in test.name for name in names):
            lines.append(write(test, folder))
    with open(os.path.join(folder, "list"), "w") as file:
        file.write("\n".join(lines) + "\n")
    here = os.path.dirname(os.path.abspath(__file__))
    sys.exit(subprocess.call([msched, os.path.join(here, script), os.path.join(folder, "list")]))


main()
