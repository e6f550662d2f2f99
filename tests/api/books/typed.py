"""Sums of debits minus credits by ledger and account, in centavos, as other programs read the rows of an export.

Argument: the files without their endings: .jsonl, .csv, .ptbr.csv, .parquet, .xlsx. Prints JSON: reader -> rows.
"""

import datetime
import json
import sys

import duckdb
import openpyxl
import pandas

files = sys.argv[1]


def by_duckdb(source):
    query = f"SELECT ledger, account, CAST(sum(debit - credit) AS BIGINT) FROM {source} GROUP BY ALL ORDER BY ALL"
    return [list(row) for row in duckdb.sql(query).fetchall()]


def by_pandas(frame, ledger, account, debit, credit):
    frame["net"] = ((frame[debit] - frame[credit]) * 100).round().astype("int64")
    sums = frame.groupby([ledger, account])["net"].sum()
    return [[*names, int(net)] for names, net in sums.items()]


def by_openpyxl():
    sums = {}
    for sheet in openpyxl.load_workbook(f"{files}.xlsx", read_only=True):
        rows = sheet.iter_rows(values_only=True)
        head = next(rows)
        for row in (dict(zip(head, values)) for values in rows):
            assert isinstance(row["date"], datetime.datetime) and isinstance(row["booked_at"], datetime.datetime), row
            assert row["booked_at"].date() == row["date"].date(), row
            name = (row["ledger"], row["account"])
            sums[name] = sums.get(name, 0) + round((row["debit"] - row["credit"]) * 100)
    return [[*name, net] for name, net in sums.items()]


def is_wide_enough():
    """Whether every column shows its head, its days and times, and amounts of eleven digits."""
    sheet = openpyxl.load_workbook(f"{files}.xlsx")["Rows 1"]
    wanted = {"debit": 18, "credit": 18, "booked_at": 23, "effective_at": 23, "date": 11, "due_date": 11}
    spans = sheet.column_dimensions.values()
    widths = {number: span.width for span in spans for number in range(span.min, span.max + 1)}
    for cell in sheet[1]:
        width = widths[cell.column]
        assert width >= max(len(cell.value), wanted.get(cell.value, 0)), (cell.value, width)


is_wide_enough()
parquet = f"'{files}.parquet'"
reais = duckdb.sql(f"SELECT typeof(debit_brl), bool_and(debit_brl * 100 = debit) FROM {parquet} GROUP BY ALL").fetchall()
assert reais == [("DECIMAL(18,2)", True)], reais
types = dict(duckdb.sql(f"SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM {parquet})").fetchall())
assert types["date"] == "DATE" and types["booked_at"].startswith("TIMESTAMP"), types
ptbr = pandas.read_csv(f"{files}.ptbr.csv", sep=";", decimal=",", encoding="utf-8-sig")
assert pandas.to_datetime(ptbr["Data"], format="%d/%m/%Y").notna().all()
print(json.dumps({
    "DuckDB, JSON lines": by_duckdb(f"'{files}.jsonl'"),
    "DuckDB, CSV": by_duckdb(f"'{files}.csv'"),
    "DuckDB, Parquet": by_duckdb(parquet),
    "pandas, CSV for Brazil": by_pandas(ptbr, "Razão", "Conta", "Débito", "Crédito"),
    "openpyxl, workbook": by_openpyxl(),
}))
