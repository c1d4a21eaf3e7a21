"""Repeats the usage of a store over the last 30 days, with more calls by day than by night, for pictures of the console.

    spread_usage.py STORE

STORE is the SQLite file of a gateway that has just answered some calls of each kind. Only pictures are made from it.
"""

import math
import random
import sqlite3
import sys
import time

DAYS = 30
STEP_S = 600
TABLES = {"usage_minutes": 60, "usage_hours": 3_600, "usage_days": 86_400}
SUMS_FROM = 6  # The columns before name what is counted, and for whom.


def load(moment):
    """The share of the calls at a moment: most of them in the afternoon, some more each week, and never quite the same."""
    hour = moment % 86_400 / 3_600
    by_hour = 0.35 + 0.65 * math.exp(-(((hour - 14) / 5) ** 2))
    return by_hour * random.uniform(0.75, 1.25)


def main(store):
    random.seed(7)
    connection = sqlite3.connect(store)
    columns = [row[1] for row in connection.execute("PRAGMA table_info(usage_minutes)")]
    kinds = {}
    for row in connection.execute("SELECT * FROM usage_minutes"):
        group = (row[0], *row[2:SUMS_FROM])
        sums = kinds.setdefault(group, [0] * (len(columns) - SUMS_FROM))
        for index, value in enumerate(row[SUMS_FROM:]):
            sums[index] += value
    now = int(time.time())
    marks = ", ".join("?" * len(columns))
    additions = ", ".join(f"{name} = {name} + excluded.{name}" for name in columns[SUMS_FROM:])
    with connection:
        for moment in range(now - DAYS * 86_400, now - STEP_S, STEP_S):
            for group, sums in kinds.items():
                share = load(moment) / 6
                values = [round(value * share + random.random() / 4) for value in sums]
                for table, seconds in TABLES.items():
                    start = moment // seconds * seconds
                    row = (group[0], start, *group[1:], *values)
                    connection.execute(
                        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks}) ON CONFLICT DO UPDATE SET {additions}",
                        row,
                    )


main(sys.argv[1])
