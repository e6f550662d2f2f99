#!/usr/bin/env bash
# hyperformula 3.5.0, fast-formula-parser 1.0.19, hot-formula-parser 4.0.0 (npm) and formulas 1.3.4 (PyPI) beside pycel
# 1.0b30, xlcalculator 0.5.0 (PyPI) and @formulajs/formulajs 4.6.1 (npm): formulas of fees, rounded to centavos.
# Guessed: an amount that has two decimals stays as it is, whichever way it is rounded to two, as in a spreadsheet.
# Seen: ROUNDUP makes 1.11 of 1.10 in the first four, and ROUNDDOWN 0.28 of 0.29 and -0.28 of -0.29, since they multiply
# by 100 in binary and go up or down then; 8.20 is 8.21 in one, 19.99 is 19.98 in three. TRUNC of fast-formula-parser
# leaves its decimals out: 80.53 is 80. The last three are right but for TRUNC(0.29). LibreOffice 7.4.7 is right in all.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check pycel==1.0b30 formulas==1.3.4 xlcalculator==0.5.0 openpyxl==3.1.5
npm install --silent --no-audit --no-fund fast-formula-parser@1.0.19 hot-formula-parser@4.0.0 hyperformula@3.5.0 @formulajs/formulajs@4.6.1
cat > round.py <<'PY'
import json, formulas, openpyxl, pycel, xlcalculator
cells = json.load(open('cells.json'))
book = openpyxl.Workbook()
for row, cell in enumerate(cells, 1): book.active.cell(row, 1, '=' + cell)
book.save('fees.xlsx')
rows = range(1, len(cells) + 1)
print('formulas', *(f"{float(formulas.Parser().ast('=' + cell)[1].compile()()):g}" for cell in cells))
pycel_book = pycel.ExcelCompiler(filename='fees.xlsx')
print('pycel', *(f"{float(pycel_book.evaluate(f'Sheet!A{row}')):g}" for row in rows))
xlcalculator_book = xlcalculator.Evaluator(xlcalculator.ModelCompiler().read_and_parse_archive('fees.xlsx'))
print('xlcalculator', *(f"{float(xlcalculator_book.evaluate(f'Sheet!A{row}').value):g}" for row in rows))
PY
cat > round.mjs <<'JS'
import { readFileSync } from 'node:fs'
import * as formulajs from '@formulajs/formulajs'
import FastFormulaParser from 'fast-formula-parser'
import { Parser } from 'hot-formula-parser'
import { HyperFormula } from 'hyperformula'
const cells = JSON.parse(readFileSync('cells.json'))
const book = HyperFormula.buildFromArray([cells.map(cell => '=' + cell)], { licenseKey: 'gpl-v3' })
console.log('hyperformula', ...cells.map((_, col) => book.getCellValue({ sheet: 0, row: 0, col })))
console.log('fast-formula-parser', ...cells.map(cell => new FastFormulaParser().parse(cell, { sheet: 'S', row: 1, col: 1 })))
console.log('hot-formula-parser', ...cells.map(cell => new Parser().parse(cell).result))
console.log('formulajs', ...cells.map(cell => cell.match(/(\w+)\((.*),2\)/)).map(([, name, amount]) => formulajs[name](Number(amount), 2)))
JS
echo '["ROUNDUP(1.1,2)", "ROUNDUP(8.2,2)", "ROUNDDOWN(0.29,2)", "ROUNDDOWN(-0.29,2)", "ROUNDDOWN(19.99,2)", "TRUNC(80.53,2)", "TRUNC(0.29,2)"]' > cells.json
seen=$(node round.mjs && v/bin/python -W ignore round.py 2> /dev/null)
echo "$seen"
[ "$seen" = "hyperformula 1.11 8.2 0.28 -0.28 19.98 80.53 0.28
fast-formula-parser 1.11 8.21 0.28 -0.28 19.99 80 0
hot-formula-parser 1.11 8.2 0.28 -0.28 19.98 80.53 0.28
formulajs 1.1 8.2 0.29 -0.29 19.99 80.53 0.28
formulas 1.11 8.2 0.28 -0.28 19.98 80.53 0.28
pycel 1.1 8.2 0.29 -0.29 19.99 80.53 0.28
xlcalculator 1.1 8.2 0.29 -0.29 19.99 80.53 0.28" ]
