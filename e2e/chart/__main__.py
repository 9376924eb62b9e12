"""`python -m e2e.chart`: copies the definitions into the chart, and writes its checked-in renders."""

import shutil

from e2e.chart.golden import texts
from e2e.chart.rendering import CHART, ROOT


def main() -> None:
    copies = CHART / "files" / "crds"
    shutil.rmtree(copies)
    shutil.copytree(ROOT / "crds", copies)
    for path, text in texts().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
