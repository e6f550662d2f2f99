#!/usr/bin/env bash
# pyexcel-ods 0.6.0 and pyexcel-ods3 0.6.1 beside pandas-ods-reader 1.0.2 and python-calamine 0.9.1 (PyPI): a LibreOffice
# sheet with one amount as a plain number and two that an accountant formatted as currency.
# Guessed: the format of a cell is how it looks; its value is a number, and a column of amounts can be summed.
# Seen: both pyexcel plugins join the value and the currency to a text, 1234.56 BRL, so a sum of the numbers of the column
# is 80.53 instead of 1414.99, and a sum of all raises. Where the cell names no currency, which ODF leaves optional, the
# whole sheet is a TypeError. The other two give numbers.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check pyexcel-ods==0.6.0 pyexcel-ods3==0.6.1 pyexcel-io==0.6.8 \
  odfpy==1.4.1 lxml==6.1.3 pandas-ods-reader==1.0.2 python-calamine==0.9.1
cat > read.py <<'PY'
import pyexcel_ods, pyexcel_ods3
from odf.opendocument import OpenDocumentSpreadsheet
from odf.table import Table, TableCell, TableRow
from odf.text import P
from pandas_ods_reader import read_ods
from python_calamine import CalamineWorkbook

def write(currency):
    book, table = OpenDocumentSpreadsheet(), Table(name='S')
    for value, of in [('amount', None), ('80.53', None), ('1234.56', currency), ('99.90', currency)]:
        kind = {'valuetype': 'string'} if value == 'amount' else {'valuetype': 'float', 'value': value}
        cell = TableCell(**(kind if of is None else {**kind, **of, 'valuetype': 'currency'}))
        cell.addElement(P(text=value))
        row = TableRow()
        row.addElement(cell)
        table.addElement(row)
    book.spreadsheet.addElement(table)
    book.save('book.ods')

readers = {
    'pyexcel-ods': lambda: [row[0] for row in pyexcel_ods.get_data('book.ods')['S'][1:]],
    'pyexcel-ods3': lambda: [row[0] for row in pyexcel_ods3.get_data('book.ods')['S'][1:]],
    'pandas-ods-reader': lambda: list(map(float, read_ods('book.ods', 1)['amount'])),
    'calamine': lambda: [row[0] for row in CalamineWorkbook.from_path('book.ods').get_sheet_by_index(0).to_python()[1:]],
}
for currency in [{'currency': 'BRL'}, {}]:
    write(currency)
    for name, read in readers.items():
        try:
            print(name, *map(repr, read()))
        except TypeError:
            print(name, 'TypeError')
PY
seen=$(v/bin/python read.py)
echo "$seen"
[ "$seen" = "pyexcel-ods 80.53 '1234.56 BRL' '99.9 BRL'
pyexcel-ods3 80.53 '1234.56 BRL' '99.9 BRL'
pandas-ods-reader 80.53 1234.56 99.9
calamine 80.53 1234.56 99.9
pyexcel-ods TypeError
pyexcel-ods3 TypeError
pandas-ods-reader 80.53 1234.56 99.9
calamine 80.53 1234.56 99.9" ]
