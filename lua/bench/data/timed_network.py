"""What the sides of `msched bench nets` share: another program's network that stays open, and runs when it is told to.
Each is called with MODEL FOLDER THREADS DEVICE.

FOLDER/INPUT.I.npy are the model's inputs, by number from 0, which FOLDER/inputs names, one a line. It writes the outputs as
FOLDER/OUTPUT.I.npy, and one JSON object: its version and how much memory it takes. Then each line on standard input, a number of
seconds, is answered by one: the median of runs in so long (at least three), and how many they were."""
import ctypes, json, statistics, sys, time
import numpy


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


def serve(version, open_network):
    """open_network(model, threads, device, feeds) gives what runs the network, and what gives its outputs as arrays."""
    model, folder, threads, device = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    names = open(folder + "/inputs").read().split("\n")[:-1]
    feeds = {name: numpy.load("%s/INPUT.%d.npy" % (folder, i)) for i, name in enumerate(names)}
    before = status("VmRSS")
    run, outputs = open_network(model, threads, device, feeds)
    counted = forget_peak()
    run()
    for i, output in enumerate(outputs()):
        numpy.save("%s/OUTPUT.%d.npy" % (folder, i), output)
    after = status("VmHWM")
    peak = after - before if counted and before and after else 0
    print(json.dumps({"version": version, "peak_bytes": peak}), flush=True)
    rounds(run)
