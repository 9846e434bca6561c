#!/usr/bin/env python3
"""Which tests run regions of our C that no other test runs: the table that `adds_no_region` of tests/run is made by.

usage: coverage.py COVERAGE SANITIZED FOLDER [--chosen REGEX] [--left REGEX] [--kept REGEX] [--least SECONDS] [--jobs N]

COVERAGE and SANITIZED are builds with MSCHED_COVERAGE and MSCHED_SANITIZE. Tests that match --chosen and not --left run
by themselves: in SANITIZED for their CPU seconds, in COVERAGE for the regions and the sides of branches that they run,
their children's too. Those of fewer than --least seconds, and those that match --kept, stay. Of the others the cheapest
are sought, greedily, that run what these leave: first by counters, of which each is that of a region; then by all
regions and sides of branches, which are sums and differences of these. FOLDER has what was measured; where it has a test's
numbers, they are taken from there.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import threading

OBJECTS = ["msched", "tests/unit", "msched-helper"]


def tests_of(build, chosen, left):
    """Names, in ctest's order, with commands and environments."""
    shown = json.loads(subprocess.check_output(["ctest", "--test-dir", build, "--show-only=json-v1"]))
    tests = {}
    for test in shown["tests"]:
        if not re.search(chosen, test["name"]) or re.search(left, test["name"]) or "command" not in test:
            continue
        properties = {each["name"]: each["value"] for each in test.get("properties", [])}
        tests[test["name"]] = test["command"], properties
    return tests


def run(build, test, log, **variables):
    """CPU seconds of a test and of the children that it waited for, and whether it passed or skipped."""
    command, properties = test
    environment = dict(os.environ, **variables)
    environment.update(each.split("=", 1) for each in properties.get("ENVIRONMENT", []))
    with open(log, "w") as file:
        process = subprocess.Popen(command, env=environment, cwd=properties.get("WORKING_DIRECTORY", build), stdin=subprocess.DEVNULL,
                                   stdout=file, stderr=file, start_new_session=True)
        alarm = threading.Timer(1800, process.kill)
        alarm.start()
        _, status, usage = os.wait4(process.pid, 0)
        alarm.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
    passed = process.returncode in (0, properties.get("SKIP_RETURN_CODE", 0))
    if "PASS_REGULAR_EXPRESSION" in properties:
        with open(log, errors="replace") as file:
            passed = any(re.search(each, file.read()) for each in properties["PASS_REGULAR_EXPRESSION"])
    return usage.ru_utime + usage.ru_stime, passed


def seconds_of(build, tests, folder, jobs):
    """CPU seconds of each test, sanitized."""
    known = {}
    path = os.path.join(folder, "seconds")
    if os.path.exists(path):
        with open(path) as file:
            known = {line.split()[0]: float(line.split()[1]) for line in file}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool, open(path, "a") as file:
        missing = [name for name in tests if name not in known]
        took = pool.map(lambda name: run(build, tests[name], os.path.join(folder, name + ".sanitized.log")), missing)
        for name, (seconds, passed) in zip(missing, took):
            known[name] = seconds
            file.write(f"{name} {seconds:.2f}\n")
            file.flush()
            if not passed:
                print(f"coverage: {name} failed, sanitized: {folder}/{name}.sanitized.log", flush=True)
    return known


def profile(build, test, folder, name):
    """Runs a test in the build that counts regions: the file of its counts."""
    merged = os.path.join(folder, name + ".profdata")
    if os.path.exists(merged):
        return merged
    raw = os.path.join(folder, name + ".raw")
    shutil.rmtree(raw, ignore_errors=True)
    os.mkdir(raw)
    log = os.path.join(folder, name + ".log")
    _, passed = run(build, test, log, LLVM_PROFILE_FILE=os.path.join(raw, "%m%c"))
    if not passed:
        print(f"coverage: {name} failed: {log}", flush=True)
    merge(merged, [os.path.join(raw, each) for each in os.listdir(raw)])
    shutil.rmtree(raw)
    return merged


def merge(merged, files):
    if not files:  # it calls no program of ours
        return
    subprocess.run(["llvm-profdata", "merge", "-sparse", "-failure-mode=all", "-o", merged, *files], check=True, stderr=subprocess.DEVNULL)


def export(build, counts):
    """Regions and sides of branches of our C that ran, by function."""
    program, *others = [os.path.join(build, each) for each in OBJECTS]
    named = [word for other in others for word in ("-object", other)]
    text = subprocess.run(["llvm-cov", "export", "-format=text", "-instr-profile", counts, program, *named,
                           "-ignore-filename-regex=/tests/|/generated/|/onnx/"],
                          check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout
    functions = {}
    for function in json.loads(text)["data"][0]["functions"]:
        files = function["filenames"]
        if all("/tests/" in file for file in files):  # tests' own, though files of theirs are left out
            continue
        ran = functions.setdefault(function["name"], set())
        for a, b, c, d, count, file, _, kind in function["regions"]:
            if count and kind == 0:  # code; not expansions, skipped lines or gaps
                ran.add((files[file], a, b, c, d))
        for a, b, c, d, true, false, file, *_ in function["branches"]:
            ran.update((files[file], a, b, c, d, side) for side, count in ((True, true), (False, false)) if count)
    return functions


def counters(counts, functions):
    """What is counted and ran, of these functions: much cheaper than regions, which are sums and differences of it."""
    ran = set()
    if not os.path.exists(counts):
        return ran
    text = subprocess.run(["llvm-profdata", "show", "--all-functions", "--counts", counts], check=True, stdout=subprocess.PIPE,
                          text=True).stdout
    name = None
    for line in text.splitlines():
        if line.startswith("  ") and not line.startswith("   ") and line.endswith(":"):
            name = line.strip()[:-1]
        elif name not in functions:
            continue
        elif line.startswith("    Function count: ") and not line.endswith(": 0"):
            ran.add((name, -1))
        elif line.startswith("    Block counts: ["):
            blocks = line[len("    Block counts: ["):-1].split(", ")
            ran.update((name, i) for i, count in enumerate(blocks) if count not in ("", "0"))
    return ran


def cover(ran, seconds, covered):
    """The cheapest tests, greedily, that run what is not covered: by what a second of them adds."""
    chosen = []
    left = dict(ran)
    now = set(covered)
    while left:
        best = max(left, key=lambda name: (len(left[name] - now) / max(seconds[name], 0.01), name))
        if not left[best] - now:
            break
        now |= left.pop(best)
        chosen.append(best)
    for name in sorted(chosen, key=lambda name: -seconds[name]):  # what later ones made superfluous
        if not ran[name] - covered.union(*(ran[each] for each in chosen if each != name)):
            chosen.remove(name)
    return chosen


def missing(all_of, some_of):
    return {name: ran - some_of.get(name, set()) for name, ran in all_of.items() if ran - some_of.get(name, set())}


def size(functions):
    return sum(len(ran) for ran in functions.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("coverage")
    parser.add_argument("sanitized")
    parser.add_argument("folder")
    parser.add_argument("--chosen", default=".")
    parser.add_argument("--left", default="^$")
    parser.add_argument("--kept", default="^$")
    parser.add_argument("--least", type=float, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    asked = parser.parse_args()
    os.makedirs(asked.folder, exist_ok=True)
    tests = tests_of(asked.coverage, asked.chosen, asked.left)
    seconds = seconds_of(asked.sanitized, tests_of(asked.sanitized, asked.chosen, asked.left), asked.folder, asked.jobs)
    tests = {name: test for name, test in tests.items() if name in seconds}
    dear = [name for name in tests if seconds[name] >= asked.least and not re.search(asked.kept, name)]
    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        order = sorted(tests, key=lambda name: -seconds[name])
        profiles = dict(zip(order, pool.map(lambda name: profile(asked.coverage, tests[name], asked.folder, name), order)))

    def regions_of(names):
        merged = os.path.join(asked.folder, "merged.profdata")
        merge(merged, [profiles[name] for name in names if os.path.exists(profiles[name])])
        return export(asked.coverage, merged)

    every = regions_of(tests)
    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        ran = dict(zip(tests, pool.map(lambda name: counters(profiles[name], every), tests)))
    base = set().union(*(ran[name] for name in tests if name not in dear))
    chosen = cover({name: ran[name] for name in dear}, seconds, base)
    print("by counters they stay: " + " ".join(chosen), flush=True)
    # Regions that are differences of counters may be left: of a test that runs their functions.
    stay = lambda: [name for name in tests if name not in dear or name in chosen]
    lacks = missing(every, regions_of(stay()))
    tried = set(chosen)
    while lacks:
        functions_run = lambda name: sum(len(lacks[each]) for each in {each for each, _ in ran[name]} if each in lacks)
        best = max((name for name in dear if name not in tried), key=lambda name: functions_run(name) / seconds[name], default=None)
        if best is None:
            break
        tried.add(best)
        also = regions_of([best])
        if any(also.get(each, set()) & regions for each, regions in lacks.items()):
            chosen.append(best)
            lacks = missing(lacks, also)
    after = size(every) - size(lacks)
    print(f"{'test':44} {'CPU s':>7} {'counters':>8} {'only its':>8}  stays")
    for name in sorted(tests, key=lambda name: -seconds[name]):
        if name in dear:
            alone = ran[name].difference(base, *(ran[each] for each in dear if each != name))
            print(f"{name:44} {seconds[name]:7.2f} {len(ran[name]):8} {len(alone):8}  {'yes' if name in chosen else 'no'}")
    left = [name for name in dear if name not in chosen]
    print(f"{len(tests)} tests of {sum(seconds[name] for name in tests):.0f} CPU s run {size(every)} regions and sides of branches; "
          f"without {len(left)} of {sum(seconds[name] for name in left):.0f} CPU s, {after}")
    print("add no region: " + "|".join(re.escape(name) for name in left))


if __name__ == "__main__":
    main()
