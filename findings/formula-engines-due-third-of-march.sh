#!/usr/bin/env bash
# pycel 1.0b30 (PyPI), fast-formula-parser 1.0.19 and hot-formula-parser 4.0.0 (npm), which compute a spreadsheet's formulas
# in a server, beside formulas 1.3.4, xlcalculator 0.5.0 (PyPI), hyperformula 3.5.0 and @formulajs/formulajs 4.6.1 (npm):
# due days of the instalments of a sale of 31 January 2026, by EDATE.
# Guessed: a month after 31 January is 28 February, as in the spreadsheet from which the formula comes.
# Seen: the first three add the month and keep the 31: 3 March, so that February has no instalment and March has two, and
# 1 May instead of 30 April. One month before 31 March is 3 March. The other four have 28 February, 30 April, 28 February,
# as LibreOffice 7.4.7. Nothing warns.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check pycel==1.0b30 formulas==1.3.4 xlcalculator==0.5.0 openpyxl==3.1.5
npm install --silent --no-audit --no-fund fast-formula-parser@1.0.19 hot-formula-parser@4.0.0 hyperformula@3.5.0 @formulajs/formulajs@4.6.1
cat > due.py <<'PY'
import datetime, formulas, openpyxl, pycel, xlcalculator
cells = ['=EDATE(DATE(2026,1,31),1)', '=EDATE(DATE(2026,1,31),2)', '=EDATE(DATE(2026,1,31),3)', '=EDATE(DATE(2026,3,31),-1)']
book = openpyxl.Workbook()
for row, cell in enumerate(cells, 1): book.active.cell(row, 1, cell)
book.save('plan.xlsx')
# A day of a spreadsheet, counted since 1899 or as a time, as day and month.
def day(value): return f'{value if isinstance(value, datetime.datetime) else datetime.date(1899, 12, 30) + datetime.timedelta(int(value)):%d/%m}'
pycel_book = pycel.ExcelCompiler(filename='plan.xlsx')
print('pycel', *(day(pycel_book.evaluate(f'Sheet!A{row}')) for row in range(1, 5)))
print('formulas', *(day(formulas.Parser().ast(cell)[1].compile()()) for cell in cells))
xlcalculator_book = xlcalculator.Evaluator(xlcalculator.ModelCompiler().read_and_parse_archive('plan.xlsx'))
print('xlcalculator', *(day(xlcalculator_book.evaluate(f'Sheet!A{row}').value) for row in range(1, 5)))
PY
cat > due.mjs <<'JS'
import { EDATE } from '@formulajs/formulajs'
import FastFormulaParser from 'fast-formula-parser'
import { Parser } from 'hot-formula-parser'
import { HyperFormula } from 'hyperformula'
const cells = [[1, 1], [1, 2], [1, 3], [3, -1]], formulas = cells.map(([month, months]) => `EDATE(DATE(2026,${month},31),${months})`)
// A day of a spreadsheet, counted since 1899, as day and month.
const day = serial => new Date(Date.UTC(1899, 11, 30 + serial)).toISOString().replace(/.*-(..)-(..)T.*/, '$2/$1')
const book = HyperFormula.buildFromArray([formulas.map(formula => '=' + formula)], { licenseKey: 'gpl-v3' })
console.log('fast-formula-parser', ...formulas.map(formula => day(new FastFormulaParser().parse(formula, { sheet: 'S', row: 1, col: 1 }))))
console.log('hot-formula-parser', ...formulas.map(formula => day(new Parser().parse(formula).result)))
console.log('hyperformula', ...formulas.map((_, col) => day(book.getCellValue({ sheet: 0, row: 0, col }))))
console.log('formulajs', ...cells.map(([month, months]) => EDATE(new Date(2026, month - 1, 31), months)).map(time =>
  `${String(time.getDate()).padStart(2, 0)}/${String(time.getMonth() + 1).padStart(2, 0)}`))
JS
seen=$(v/bin/python -W ignore due.py 2> /dev/null && node due.mjs)
echo "$seen"
[ "$seen" = "pycel 03/03 31/03 01/05 03/03
formulas 28/02 31/03 30/04 28/02
xlcalculator 28/02 31/03 30/04 28/02
fast-formula-parser 03/03 31/03 01/05 03/03
hot-formula-parser 03/03 31/03 01/05 03/03
hyperformula 28/02 31/03 30/04 28/02
formulajs 28/02 31/03 30/04 28/02" ]
