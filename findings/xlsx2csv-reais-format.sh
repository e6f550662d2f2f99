#!/usr/bin/env bash
# xlsx2csv 0.8.6 beside python-calamine 0.9.1 (PyPI): a workbook whose amounts have a number format with a word behind the
# number: 80,50 reais, or D and C for debit and credit, as accountants in Brazil mark them.
# Guessed: a number format is how a cell looks; a converter writes the number, or the number as the format shows it.
# Seen: a quoted letter of a date (d, h, m, s, y) makes a date of every number of the format that is not negative: instead
# of 80.50 the file has the words of the format, or a day of 1900 (20) among them, and 0.29 is 06:57. The amounts are
# nowhere in the CSV, and nothing warns. Negative amounts are right. calamine gives the numbers.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check xlsx2csv==0.8.6 openpyxl==3.1.5 python-calamine==0.9.1
v/bin/python -c "
from openpyxl import Workbook
book = Workbook()
for kind in ['#,##0.00', '#,##0.00 \"reais\"', '#,##0.00 \"D\";#,##0.00 \"C\"']:
    for amount in [80.5, 0.29, -80.5]:
        book.active.append([amount])
        book.active.cell(book.active.max_row, 1).number_format = kind
book.save('amounts.xlsx')"
seen=$(v/bin/xlsx2csv amounts.xlsx
v/bin/python -c "
from python_calamine import CalamineWorkbook
print('calamine', *(row[0] for row in CalamineWorkbook.from_path('amounts.xlsx').get_sheet_by_index(0).to_python()))")
echo "xlsx2csv 0.8.6: $seen"
[ "$seen" = '80.5
0.29
-80.5
"#,##0.00 ""reais"""
06:57
-80.5
"#,##0.00 ""20"";#,##0.00 ""c"""
06:57
-80.5
calamine 80.5 0.29 -80.5 80.5 0.29 -80.5 80.5 0.29 -80.5' ]
