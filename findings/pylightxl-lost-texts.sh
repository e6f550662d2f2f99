#!/usr/bin/env bash
# pylightxl 1.61 reads workbooks of XlsxWriter 3.3.1, beside openpyxl 3.1.5 (PyPI): a bank's lines with C or D for credit
# and debit in a column, as Brazilian statements have it, written once as it comes and once with constant_memory, for long
# exports.
# Guessed: both workbooks have the same cells for a reader; where the file keeps a text is no matter of who reads it.
# Seen: with constant_memory a text stands in its cell and not in the common list, as the standard allows. pylightxl reads
# such a cell as empty: the amounts are there, while letters, names and heads are not, so that a fee of 10.50 looks like a
# receipt. Columns of texts at the end are gone. Nothing warns. openpyxl reads both alike.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check pylightxl==1.61 XlsxWriter==3.3.1 openpyxl==3.1.5
seen=$(v/bin/python -c "
import openpyxl, pylightxl, xlsxwriter
for constant_memory in [False, True]:
    book = xlsxwriter.Workbook('bank.xlsx', {'constant_memory': constant_memory})
    sheet = book.add_worksheet()
    for row, cells in enumerate([['Amount', 'D/C', 'Payer'], [80.53, 'C', 'Maria'], [10.5, 'D', 'Fee']]):
        sheet.write_row(row, 0, cells)
    book.close()
    print(list(pylightxl.readxl('bank.xlsx').ws('Sheet1').rows))
    print([list(cells) for cells in openpyxl.load_workbook('bank.xlsx').active.values])")
echo "pylightxl 1.61, openpyxl 3.1.5: $seen"
[ "$seen" = "[['Amount', 'D/C', 'Payer'], [80.53, 'C', 'Maria'], [10.5, 'D', 'Fee']]
[['Amount', 'D/C', 'Payer'], [80.53, 'C', 'Maria'], [10.5, 'D', 'Fee']]
[[''], [80.53], [10.5]]
[['Amount', 'D/C', 'Payer'], [80.53, 'C', 'Maria'], [10.5, 'D', 'Fee']]" ]
