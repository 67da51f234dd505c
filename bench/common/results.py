# SPDX-License-Identifier: MIT
"""What bench/paper and bench/async share: numbers in tables, the machine, figures by gnuplot."""

import os
import platform
import shutil
import subprocess
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def find_programs(directory, program, given):
    """Where `program` was built, below `directory` of a build tree; None if nowhere."""
    candidates = [given] if given else [
        os.path.join(base, directory) for base in (os.getcwd(), os.path.join(TOP, "build"), TOP)]
    for candidate in candidates:
        if os.access(os.path.join(candidate, program), os.X_OK):
            return candidate
    return None


def number(value, form="{:.3f}"):
    return form.format(value) if value is not None else "-"


def ratio(above, below):
    return above / below if above is not None and below else None


def gain(slow, fast):
    """The paper's gain: the part of the slow time that is saved, in percent."""
    return 100 * (1 - fast / slow) if slow and fast is not None else None


def machine():
    model = platform.processor()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            model = next(line.split(":", 1)[1].strip() for line in file if "model name" in line)
    except (OSError, StopIteration):
        pass
    commit = subprocess.run(["git", "-C", TOP, "describe", "--always", "--dirty"],
                            capture_output=True, text=True, check=False).stdout.strip()
    return {"date": time.strftime("%Y-%m-%d %H:%M:%S %z"), "system": platform.platform(),
            "processor": model, "cores": len(os.sched_getaffinity(0)),
            "commit": commit or os.environ.get("COMMIT")}


def write_data(path, columns, rows):
    """A file for gnuplot: columns with names, text in quotes, NaN where there is no value."""
    def cell(value):
        if isinstance(value, str):
            return f'"{value}"'
        return number(value, "{:.9g}") if value is not None else "NaN"

    with open(path, "w", encoding="utf-8") as file:
        print(*[f'"{name}"' for name in columns], file=file)
        for row in rows:
            print(*[cell(value) for value in row], file=file)


def draw(path, commands):
    """Runs gnuplot; returns what went wrong, or None. Without gnuplot nothing is drawn."""
    gnuplot = shutil.which("gnuplot")
    if not gnuplot:
        return None
    script = f'set terminal pngcairo size 800,500\nset output "{path}"\nset grid\n{commands}\n'
    done = subprocess.run([gnuplot], input=script, text=True, capture_output=True, check=False)
    return f"gnuplot: {done.stderr.strip()}" if done.returncode != 0 else None


def histogram(data, columns):
    """gnuplot's commands for bars in groups: a group a row, its name in the first column."""
    bars = ", ".join(f'"{data}" using {"%d:xtic(1)" % i if i == 2 else i} title columnheader({i})'
                     for i in range(2, columns + 1))
    return ("set style data histograms\nset style fill solid 0.8 border -1\nset boxwidth 0.9\n"
            f"set key outside top\nplot {bars}")
