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
PLACES = {"out": "out_of_place", "in": "in_place"}


class Problem(Exception):
    pass


def load(path):
    if os.path.exists(path) and not os.path.isfile(path):
        raise Problem(f"{path} is no file")
    try:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
    except (OSError, ValueError) as error:
        raise Problem(f"cannot read {path}: {error}") from error
    if not isinstance(report, dict) or report.get("schema") != "librun.bench/1":
        raise Problem(f"{path} is no report of car_bench -J (schema librun.bench/1)")
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


def phases_of(reports):
    """[(label, median_us)] over all files, in the order the phases ran."""
    samples = {}
    for _, report in reports:
        for phase in report.get("suspend", []):
            if phase["phase"] != "total":
                label = f'{phase["transition"]} {phase["phase"]}'
                samples.setdefault(label, []).extend(phase["us"])
    return [(label, statistics.median(us)) for label, us in samples.items() if us]


def with_matplotlib(plt, curves, phases, output, title):
    panels = 3 if phases else 2
    figure, axes = plt.subplots(1, panels, figsize=(6 * panels, 5))
    for index, (label, points) in enumerate(curves.items()):
        sizes, times, rates = zip(*points)
        style = {"label": label, "color": COLORS[index % len(COLORS)], "marker": "o", "markersize": 3}
        if label.split()[-1] == "mpi":
            style["linestyle"] = "--"
        axes[0].plot(sizes, times, **style)
        axes[1].plot(sizes, rates, **style)
    axes[0].set(xscale="log", yscale="log", xlabel="size (bytes)", ylabel="time (us)")
    axes[1].set(xscale="log", xlabel="size (bytes)", ylabel="bus bandwidth (GB/s)")
    axes[1].set_ylim(bottom=0)
    for axis in axes[:2]:
        axis.set_xscale("log", base=2)
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
    terminal = {"svg": "svg", "png": "png"}[output.rsplit(".", 1)[-1]]
    panels = 3 if phases else 2
    script = [f"set terminal {terminal} size {600 * panels},500", f"set output {quoted(output)}"]
    script.append(f"set multiplot layout 1,{panels} title {quoted(title)} noenhanced")
    script += ["set key noenhanced left top", "set grid", "set logscale x 2", "set xlabel 'size (bytes)'"]
    for index, (label, points) in enumerate(curves.items()):
        rows = [f"{size} {time} {rate}" for size, time, rate in points]
        script += [f"$curve{index} << EOD"] + rows + ["EOD"]

    def plot(column):
        parts = []
        for index, label in enumerate(curves):
            dash = 2 if label.split()[-1] == "mpi" else 1
            parts.append(f"$curve{index} using 1:{column} with linespoints pt 7 ps 0.4 dt {dash} "
                         f"lc rgb '{COLORS[index % len(COLORS)]}' title {quoted(label)}")
        return "plot " + ", ".join(parts)

    script += ["set logscale y", "set ylabel 'time (us)'", plot(2)]
    script += ["unset logscale y", "set yrange [0:*]", "set ylabel 'bus bandwidth (GB/s)'", plot(3)]
    if phases:
        script += ["$phases << EOD"] + [f'"{label}" {us}' for label, us in phases] + ["EOD"]
        script += ["unset logscale", "set style fill solid", "set boxwidth 0.8", "unset xlabel"]
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
    arguments = parser.parse_args()
    if not arguments.output.endswith((".svg", ".png")):
        parser.error(f"-o {arguments.output}: the name must end with .svg or .png")
    try:
        reports = [(path, load(path)) for path in arguments.files]
        ranks = sorted({report["config"]["ranks"] for _, report in reports})
        title = "all-reduce, " + ", ".join(str(n) for n in ranks) + " ranks"
        draw(curves_of(reports, arguments.place), phases_of(reports), arguments.output, title)
    except (Problem, OSError, subprocess.CalledProcessError) as problem:
        print(f"plot_bench.py: {problem}", file=sys.stderr)
        return 3
    print(arguments.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
