"""Values in each column of the rows of an export, as the readers that exports.md names count them.

Reads all.parquet, and all.jsonl by all.jsonl.read.sql, in the working directory. Prints JSON: reader -> column -> count.
"""

import json
import pathlib

import duckdb
import pandas
import polars
import pyarrow.parquet

COLUMNS = [name for name in pandas.read_json("all.jsonl", lines=True, nrows=1).columns]


def by_duckdb(relation):
    counts = ", ".join(f'count("{name}")' for name in COLUMNS)
    return dict(zip(COLUMNS, duckdb.sql(f"SELECT {counts} FROM ({relation})").fetchall()[0]))


polars_frame = polars.read_parquet("all.parquet")
pandas_frame = pandas.read_parquet("all.parquet")
table = pyarrow.parquet.read_table("all.parquet")
print(json.dumps({
    "DuckDB, JSON lines": by_duckdb(pathlib.Path("all.jsonl.read.sql").read_text().strip().rstrip(";")),
    "DuckDB, Parquet": by_duckdb("SELECT * FROM 'all.parquet'"),
    "polars": {name: polars_frame[name].count() for name in COLUMNS},
    "pandas": {name: int(pandas_frame[name].count()) for name in COLUMNS},
    "pyarrow": {name: table.num_rows - table[name].null_count for name in COLUMNS},
}))
