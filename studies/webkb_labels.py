"""Write the labels of webkb as ``url,topic,split``, with one university's pages as test pages.

python studies/webkb_labels.py $LABELS/webkb/labels.csv > webkb.csv
"""

from __future__ import annotations

import csv
import sys

TESTED = "wisconsin"

with open(sys.argv[1], encoding="utf-8", newline="") as labels:  # noqa: PTH123
    rows = csv.writer(sys.stdout, lineterminator="\n")
    rows.writerow(["url", "topic", "split"])
    for row in csv.DictReader(labels):
        split = "test" if row["university"] == TESTED else "train"
        rows.writerow([row["url"], f"/{row['page_class']}", split])
