"""Reports as workbooks, as the programs of accountants read them, against the JSON of the same reports.

Argument: a folder with <report>.json and <report>.xlsx, and <report>.csv where LibreOffice made it of the workbook.
Prints a line for each difference: the report, the program, what differs.
"""

import csv
import datetime
import json
import pathlib
import sys

import openpyxl
import pandas

HEAD = 4


def centavos(text):
    """An amount as LibreOffice shows it: below zero in parentheses."""
    digits = text.strip().replace(",", "").replace(".", "")
    return -int(digits.strip("()")) if digits.startswith("(") else int(digits or 0)


def expected(report, column, value):
    if value is None:
        return None
    if column["kind"] == "centavos":
        return round(value / 100, 2)
    if column["kind"] == "date":
        return datetime.datetime.fromisoformat(value)
    if column["kind"] == "percent":
        return round(float(value) / 100, 6)
    return value


def by_openpyxl(report, path):
    sheet = openpyxl.load_workbook(path).worksheets[0]
    last = openpyxl.utils.get_column_letter(len(report["columns"]))
    rows = list(sheet.iter_rows(min_row=HEAD, values_only=True))
    yield "head", list(rows[0]), [column["label"] for column in report["columns"]]
    yield "frozen", sheet.freeze_panes, f"A{HEAD + 1}"
    yield "filter", sheet.auto_filter.ref, f"A{HEAD}:{last}{HEAD + len(report['rows'])}"
    yield "title", sheet.title, sheet["A1"].value
    yield "period", bool(sheet["A2"].value), True
    yield "print", (sheet.page_setup.orientation, sheet.print_title_rows), ("landscape", f"${HEAD}:${HEAD}")
    total = rows[-1] if report["totals"] else None
    for place, column in enumerate(report["columns"]):
        cells = [row[place] for row in rows[1 : 1 + len(report["rows"])]]
        if column["kind"] != "text":
            yield column["name"], cells, [expected(report, column, row[column["name"]]) for row in report["rows"]]
        if column["name"] in report["totals"]:
            yield f"total {column['name']}", total[place].startswith("=SUBTOTAL(109,"), True
        for cell in next(sheet.iter_rows(min_row=HEAD + 1, max_row=HEAD + 1))[place : place + 1]:
            styles = {"centavos": "#,##0.00_);[Red](#,##0.00)", "date": "dd/mm/yyyy", "percent": "0.00##%", "count": "0"}
            if cell.value is not None and report["rows"]:
                yield f"format {column['name']}", cell.number_format, styles.get(column["kind"], "@")


def by_pandas(report, path):
    frame = pandas.read_excel(path, header=HEAD - 1, skipfooter=1 if report["totals"] else 0)
    yield "rows", len(frame), len(report["rows"])
    values = openpyxl.load_workbook(path, data_only=True).worksheets[0]
    total = list(values.iter_rows(values_only=True))[-1]
    for place, column in enumerate(report["columns"]):
        if column["name"] in report["totals"]:
            of = frame[column["label"]].sum()
            is_amount = column["kind"] == "centavos"
            wanted = report["totals"][column["name"]]
            yield f"sum {column['name']}", round(of * 100) if is_amount else of, wanted
            yield f"total {column['name']}", round(total[place] * 100) if is_amount else total[place], wanted
        if column["kind"] == "date" and len(frame) and frame[column["label"]].notna().any():
            yield f"type {column['name']}", str(frame[column["label"]].dtype)[:10], "datetime64"


def by_libreoffice(report, path):
    lines = list(csv.reader(path.open(encoding="utf-8")))
    yield "head", lines[HEAD - 1], [column["label"] for column in report["columns"]]
    rows = lines[HEAD : HEAD + len(report["rows"])]
    for place, column in enumerate(report["columns"]):
        wanted = [row[column["name"]] for row in report["rows"]]
        shown = [row[place] for row in rows]
        if column["kind"] == "centavos":
            yield column["name"], [centavos(text) for text in shown], [value or 0 for value in wanted]
        if column["kind"] == "date":
            days = [value and datetime.date.fromisoformat(value).strftime("%d/%m/%Y") or "" for value in wanted]
            yield column["name"], shown, days
        if column["kind"] == "percent":
            percents = ["" if value is None else float(value) for value in wanted]
            yield column["name"], [text and float(text.rstrip("%")) for text in shown], percents
        if column["name"] in report["totals"] and column["kind"] == "centavos":
            yield f"total {column['name']}", centavos(lines[HEAD + len(rows)][place]), report["totals"][column["name"]]


folder = pathlib.Path(sys.argv[1])
for path in sorted(folder.glob("*.json")):
    report = json.loads(path.read_text())
    readers = {"openpyxl": (by_openpyxl, ".xlsx"), "pandas": (by_pandas, ".xlsx"), "LibreOffice": (by_libreoffice, ".csv")}
    for name, (reader, ending) in readers.items():
        file = path.with_suffix(ending)
        if file.exists():
            for what, found, wanted in reader(report, file):
                if found != wanted:
                    print(path.stem, name, what, str(found)[:200], "instead of", str(wanted)[:200])
