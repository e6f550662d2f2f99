#!/usr/bin/env bash
# polars 2.1.0 beside duckdb 2.0.1 and pyarrow 26.0.1 (PyPI): a fee of 1 % of 1,000 sales of 0.40 and of 1,000 of 80.53.
# All of them are decimals: amounts as Decimal(18,2), and the rate once as 0.01 and once as 0.0100.
# Guessed: a product of exact numbers is exact, 4.00 and 805.30 in all, however the rate is written.
# Seen: polars gives a product the larger scale of its two factors, and rounds each row to it: with 0.01 the fees of the
# small sales are 0.00 and those of the others 810.00; with 0.0100 both are right. Nothing warns, and the column says
# decimal. DuckDB and pyarrow add the two scales.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check polars==2.1.0 duckdb==2.0.1 pyarrow==26.0.1
seen=$(v/bin/python -c "
from decimal import Decimal
import duckdb, polars, pyarrow, pyarrow.compute as compute
for sale in ['0.40', '80.53']:
    sales = pyarrow.table({'v': pyarrow.array([Decimal(sale)] * 1000, pyarrow.decimal128(18, 2))})
    for rate in ['0.01', '0.0100']:
        fees = polars.from_arrow(sales).select(polars.col('v') * polars.lit(Decimal(rate)))['v'].sum()
        print(sale, rate, fees, duckdb.sql(f'SELECT sum(v * {rate}) FROM sales').fetchall()[0][0],
              compute.sum(compute.multiply(sales['v'], Decimal(rate))))")
echo "polars 2.1.0, duckdb 2.0.1, pyarrow 26.0.1: $seen"
[ "$seen" = "0.40 0.01 0.00 4.0000 4.0000
0.40 0.0100 4.0000 4.000000 4.000000
80.53 0.01 810.00 805.3000 805.3000
80.53 0.0100 805.3000 805.300000 805.300000" ]
