#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws car_bench's JSON files: time and bus bandwidth against size, and suspend/resume by phase.

Uses matplotlib where it is installed, gnuplot otherwise. Needs no display.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys

# Okabe and Ito: told apart by colour-blind readers too.
COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
DASHED = ("mpi", "floor")
PLACES = {"out": "out_of_place", "in": "in_place"}


class Problem(Exception):
    pass


def load(path, schema="librun.bench/1", maker="car_bench -J FILE"):
    if os.path.exists(path) and not os.path.isfile(path):
        raise Problem(f"{path} is no file")
    try:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
    except (OSError, ValueError) as error:
        raise Problem(f"cannot read {path}: {error}") from error
    if not isinstance(report, dict) or report.get("schema") != schema:
        raise Problem(f"{path} is not written by {maker} (schema {schema})")
    return report


def curves_of(reports, place):
    """{label: [(size, time_us, bus_gbps)]}, a curve for each file, type, operation and algorithm."""
    names = [os.path.splitext(os.path.basename(path))[0] for path, _ in reports]
    curves = {}
    for name, (_, report) in zip(names, reports):
        kinds = {(r["type"], r["redop"]) for r in report["results"]}
        for row in report["results"]:
            label = [name] if len(reports) > 1 else []
            if len(kinds) > 1:
                label += [row["type"], row["redop"]]
            timings = [("librun " + row["algo"], row[PLACES[place]])]
            timings += row.get("baseline", {}).items()
            for algo, timing in timings:
                if row["size"] > 0 and timing["time"] > 0:
                    curve = curves.setdefault(" ".join(label + [algo]), {})
                    curve.setdefault(row["size"], []).append((timing["time"], timing["bus_bw"]))
    if not curves:
        raise Problem("no results to draw")
    # Cycles (-N), and the baseline beside each algorithm, measure a size more than once.
    return {label: [(size, *map(statistics.median, zip(*samples)))
                    for size, samples in sorted(curve.items())]
            for label, curve in curves.items()}


def floor_of(calibration, ranks, sizes):
    """[(size, time_us, bus_gbps)], less than which no call can take.

    An empty launch, a load, a flag; then each byte once: over the link (2 (n-1) / n of it), or,
    where ranks share a GPU or cores, from the input to the output in their memory.
    """
    def best(what, size=None):
        found = [r for r in calibration["readings"] if r["what"] == what]
        if size is not None and found:
            near = [r["bytes"] for r in found if r["bytes"] >= size] or [max(r["bytes"] for r in found)]
            found = [r for r in found if r["bytes"] == min(near)]
        return found

    bus = 2 * (ranks - 1) / ranks
    start_us = min([r["value"] for r in best("graph_node") + best("graph_node_early")], default=0)
    start_us += sum(min(r["value"] for r in found) / 1e3
                    for found in (best("dependent_load"), best("flag_one_way")) if found)
    rate, part = ("own_copy_rate", 1) if calibration["shared"] else ("write_rate", bus)
    if not best(rate):
        raise Problem(f"the calibration has no {rate}")
    points = []
    for size in sizes:
        gbps = max(r["value"] for r in best(rate, size))
        time_us = start_us + part * size / gbps / 1e3
        points.append((size, time_us, bus * size / time_us / 1e3))
    return points


def phases_of(reports):
    """[(label, median_us)] over all files, in the order the phases ran."""
    samples = {}
    for _, report in reports:
        for phase in report.get("suspend", []):
            if phase["phase"] != "total":
                label = f'{phase["transition"]} {phase["phase"]}'
                samples.setdefault(label, []).extend(phase["us"])
    return [(label, statistics.median(us)) for label, us in samples.items() if us]


def size_name(size):
    for unit, name in ((1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")):
        if size >= unit:
            return f"{size // unit}{name}"
    return str(size)


def ticks_of(curves):
    """[(size, name)] for the axis of sizes: powers of 8 or more, a dozen at most."""
    sizes = [size for curve in curves.values() for size, _, _ in curve]
    first, last = min(sizes).bit_length() - 1, max(sizes).bit_length()
    step = max(3, -(-(last - first) // 12))
    return [(1 << power, size_name(1 << power)) for power in range(first, last + 1, step)]


def with_matplotlib(plt, curves, phases, output, title):
    panels = 3 if phases else 2
    figure, axes = plt.subplots(1, panels, figsize=(6 * panels, 5))
    for index, (label, points) in enumerate(curves.items()):
        sizes, times, rates = zip(*points)
        style = {"label": label, "color": COLORS[index % len(COLORS)], "marker": "o", "markersize": 3}
        if label.split()[-1] in DASHED:
            style.update(linestyle="--", marker=None)
        axes[0].plot(sizes, times, **style)
        axes[1].plot(sizes, rates, **style)
    axes[0].set(xscale="log", yscale="log", xlabel="size (bytes)", ylabel="time (us)")
    axes[1].set(xscale="log", xlabel="size (bytes)", ylabel="bus bandwidth (GB/s)")
    axes[1].set_ylim(bottom=0)
    for axis in axes[:2]:
        axis.set_xscale("log", base=2)
        axis.set_xticks(*zip(*ticks_of(curves)))
        axis.grid(True, which="major", alpha=0.3)
        axis.legend(fontsize="small")
    if phases:
        labels, times = zip(*reversed(phases))
        colors = [COLORS[0] if label.startswith("suspend") else COLORS[1] for label in labels]
        axes[2].barh(labels, times, color=colors)
        axes[2].set(xlabel="median time (us)")
    figure.suptitle(title)
    figure.tight_layout()
    figure.savefig(output)


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def with_gnuplot(curves, phases, output, title):
    terminal = {"svg": "svg", "png": "pngcairo"}[output.rsplit(".", 1)[-1]]
    panels = 3 if phases else 2
    script = [f"set terminal {terminal} size {600 * panels},500", f"set output {quoted(output)}"]
    script.append(f"set multiplot layout 1,{panels} title {quoted(title)} noenhanced")
    script += ["set key noenhanced left top", "set grid", "set logscale x 2", "set xlabel 'size (bytes)'"]
    sizes = [size for curve in curves.values() for size, _, _ in curve]
    script.append(f"set xrange [{min(sizes) * 0.7}:{max(sizes) * 1.4}]")
    script.append("set xtics (" + ", ".join(f"'{name}' {size}" for size, name in ticks_of(curves)) + ")")
    for index, (label, points) in enumerate(curves.items()):
        rows = [f"{size} {time} {rate}" for size, time, rate in points]
        script += [f"$curve{index} << EOD"] + rows + ["EOD"]

    def plot(column):
        parts = []
        for index, label in enumerate(curves):
            dash = 2 if label.split()[-1] in DASHED else 1
            parts.append(f"$curve{index} using 1:{column} with linespoints pt 7 ps 0.4 lw 1.5 dt {dash} "
                         f"lc rgb '{COLORS[index % len(COLORS)]}' title {quoted(label)}")
        return "plot " + ", ".join(parts)

    script += ["set logscale y", "set ylabel 'time (us)'", plot(2)]
    script += ["unset logscale y", "set yrange [0:*]", "set ylabel 'bus bandwidth (GB/s)'", plot(3)]
    if phases:
        script += ["$phases << EOD"] + [f'"{label}" {us}' for label, us in phases] + ["EOD"]
        script += ["unset logscale", "set autoscale x", "set xtics autofreq", "set style fill solid", "set boxwidth 0.8", "unset xlabel"]
        script += ["set xtics rotate by -60 noenhanced", "set ylabel 'median time (us)'", "unset key"]
        script.append(f"plot $phases using 2:xtic(1) with boxes lc rgb '{COLORS[0]}'")
    script.append("unset multiplot")
    subprocess.run(["gnuplot"], input="\n".join(script) + "\n", text=True, check=True)


def draw(curves, phases, output, title):
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        if not shutil.which("gnuplot"):
            raise Problem("needs python3-matplotlib or gnuplot-nox: install one of them") from None
        with_gnuplot(curves, phases, output, title)
    else:
        with_matplotlib(pyplot, curves, phases, output, title)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0],
                                     epilog="example: plot_bench.py before.json after.json -o out.svg")
    parser.add_argument("files", nargs="+", metavar="FILE", help="written by car_bench -J FILE")
    parser.add_argument("-o", "--output", default="bench.svg", help="an .svg or .png [bench.svg]")
    parser.add_argument("--place", choices=sorted(PLACES), default="out",
                        help="out of place or in place [out]")
    parser.add_argument("--floor", metavar="FILE",
                        help="draw what no call can beat, from car_info --calibrate --json > FILE")
    arguments = parser.parse_args()
    if not arguments.output.endswith((".svg", ".png")):
        parser.error(f"-o {arguments.output}: the name must end with .svg or .png")
    try:
        reports = [(path, load(path)) for path in arguments.files]
        ranks = sorted({report["config"]["ranks"] for _, report in reports})
        title = "all-reduce, " + ", ".join(str(n) for n in ranks) + " ranks"
        curves = curves_of(reports, arguments.place)
        if arguments.floor:
            calibration = load(arguments.floor, "librun.calibration/1", "car_info --calibrate --json")
            if ranks != [calibration["ranks"]]:
                raise Problem(f"{arguments.floor} is of {calibration['ranks']} ranks, the results are of "
                              + ", ".join(str(n) for n in ranks))
            sizes = sorted({size for curve in curves.values() for size, _, _ in curve})
            curves["floor"] = floor_of(calibration, ranks[0], sizes)
        draw(curves, phases_of(reports), arguments.output, title)
    except (Problem, OSError, subprocess.CalledProcessError) as problem:
        print(f"plot_bench.py: {problem}", file=sys.stderr)
        return 3
    print(arguments.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
