"""What gpu_figures.sh has measured so far, as Markdown: the card, and of each step its rows and their geometric mean.
With `agree`: the vendors' times of `bench ops` beside PyTorch's; the status is 1 where one of ours is more than 5 %
slower, so that a vendor is not timed at its best.
usage: gpu_summary.py FOLDER [agree]
"""
import glob, json, math, os, sys

NEAR = 1.05
folder = sys.argv[1]


def rows_of(path):
    for line in open(path):
        try:
            row = json.loads(line)
        except ValueError:  # cut
            continue
        if isinstance(row, dict) and "task" in row:
            yield row


def text_of(seconds):
    return f"{1e6 * seconds:.3g} us" if seconds < 1e-3 else f"{1e3 * seconds:.4g} ms"


def fastest(row):
    """The vendor's name and time."""
    all_of = [(v["seconds"], name) for name, v in (row.get("vendors") or {}).items()]
    return min(all_of) if all_of else None


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def fill_in(steps):
    """PyTorch's time stands beside rows for which no library of a vendor was timed, as for attention."""
    theirs = {r["task"]: r["seconds"] for rows in steps.values() for r in rows if r["bench"] == "vendors"}
    for rows in steps.values():
        for r in rows:
            if r["bench"] == "ops" and not r.get("vendors") and r["task"] in theirs:
                r["vendors"] = {"PyTorch": {"seconds": theirs[r["task"]]}}
                r["ratio"] = theirs[r["task"]] / r["seconds"]


def print_suite(step, rows):
    ratios = [r["ratio"] for r in rows if r.get("ratio")]
    print(f"\n## {step}: {len(rows)} rows", end="")
    if ratios:
        print(f", {mean(ratios):.2f} of the best vendor by geometric mean, least {min(ratios):.2f},", end=" ")
        print(f"below 0.8: {sum(r < 0.8 for r in ratios)}", end="")
    print("\n\n| | msched | vendor | ratio | of the limit |\n|---|---|---|---|---|")
    for r in rows:
        best = fastest(r)
        beside = f"{best[1]} {text_of(best[0])} | {r['ratio']:.2f}" if best else " | "
        limit = f"{100 * r['share']:.0f} % of {r['limit']['name']}" if r.get("share") else ""
        print(f"| {r['task']} | {text_of(r['seconds'])} | {beside} | {limit} |")


def print_parts(step, rows):
    print(f"\n## {step}: {len(rows)} rows\n\n| | with | without | ratio |\n|---|---|---|---|")
    for r in rows:
        same = ", one schedule" if r.get("same") else ""
        print(f"| {r['task']} | {text_of(r['seconds'])} | {text_of(r['other_seconds'])} | {r['ratio']:.2f}{same} |")


def times_of_both(steps):
    """(task, vendor, its seconds by bench ops, PyTorch's, what PyTorch called) each."""
    theirs = {r["task"]: r for rows in steps.values() for r in rows if r["bench"] == "vendors"}
    for rows in steps.values():
        for r in rows:
            if r["bench"] == "ops" and r["task"] in theirs and fastest(r) and "PyTorch" not in r["vendors"]:
                seconds, name = fastest(r)
                yield r["task"], name, seconds, theirs[r["task"]]["seconds"], theirs[r["task"]]["routine"]


def print_agreement(steps):
    both = list(times_of_both(steps))
    if not both:
        return 0
    far = [b for b in both if b[2] > NEAR * b[3]]
    print(f"\n## Vendors by bench ops beside PyTorch: {len(both)} rows, {len(far)} more than 5 % slower\n")
    print("| | bench ops | PyTorch | ratio |\n|---|---|---|---|")
    for task, name, ours, theirs, what in both:
        print(f"| {task} | {name} {text_of(ours)} | {what} {text_of(theirs)} | {ours / theirs:.2f} |")
    return len(far)


def print_card():
    try:
        card = json.load(open(os.path.join(folder, "card.json")))
    except (OSError, ValueError):
        return
    print("# " + str(card.get("GPUs", "no GPU")))
    print("\n" + ", ".join(f"{name} {card[name]}" for name in ("CUDA", "NVRTC") if name in card))


def main():
    paths = sorted(glob.glob(os.path.join(folder, "*.jsonl")), key=os.path.getmtime)
    steps = {os.path.basename(p)[: -len(".jsonl")]: list(rows_of(p)) for p in paths}
    if "agree" in sys.argv[2:]:
        sys.exit(1 if print_agreement(steps) else 0)
    fill_in(steps)
    print_card()
    for step, rows in steps.items():
        suites, parts = ([r for r in rows if r["bench"] == kind] for kind in ("ops", "part"))
        if suites:
            print_suite(step, suites)
        if parts:
            print_parts(step, parts)
    print_agreement(steps)


main()
