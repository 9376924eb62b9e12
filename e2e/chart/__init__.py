"""The chart, as Helm renders it: no cluster is needed. `python -m e2e.chart` writes the checked-in renders anew."""
