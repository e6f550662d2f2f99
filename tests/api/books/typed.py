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
    for sheet in openpyxl.load_workbook(f"{files}.xlsx", read_only=True).worksheets[:-1]:
        rows = list(sheet.iter_rows(min_row=4, values_only=True))
        assert rows[-1][0] == "Total" and rows[-1][11].startswith("=SUBTOTAL("), rows[-1]
        for row in (dict(zip(rows[0], values)) for values in rows[1:-1]):
            assert isinstance(row["Data"], datetime.datetime) and isinstance(row["Registrado em"], datetime.datetime), row
            assert row["Registrado em"].date() == row["Data"].date(), row
            name = (row["Razão"], row["Conta"])
            sums[name] = sums.get(name, 0) + round((row["Débito"] - row["Crédito"]) * 100)
    return [[*name, net] for name, net in sums.items()]


def is_wide_enough():
    """Whether every column shows its head, its days and times, and amounts of eleven digits."""
    sheet = openpyxl.load_workbook(f"{files}.xlsx")["Partidas"]
    wanted = {"Débito": 18, "Crédito": 18, "Registrado em": 23, "Efetivo em": 23, "Data": 11, "Vencimento": 11}
    spans = sheet.column_dimensions.values()
    widths = {number: span.width for span in spans for number in range(span.min, span.max + 1)}
    for cell in sheet[4]:
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
sheet = pandas.read_excel(f"{files}.xlsx", header=3, skipfooter=1)
print(json.dumps({
    "DuckDB, JSON lines": by_duckdb(f"'{files}.jsonl'"),
    "DuckDB, CSV": by_duckdb(f"'{files}.csv'"),
    "DuckDB, Parquet": by_duckdb(parquet),
    "pandas, CSV for Brazil": by_pandas(ptbr, "Razão", "Conta", "Débito", "Crédito"),
    "openpyxl, workbook": by_openpyxl(),
    "pandas, workbook": by_pandas(sheet, "Razão", "Conta", "Débito", "Crédito"),
}))
