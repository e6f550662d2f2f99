#!/usr/bin/env bash
# @dsnp/parquetjs 1.8.8 beside hyparquet-writer 0.17.0 (npm), read by pyarrow 26.0.1 (PyPI): a Parquet column DECIMAL(18,2).
# Guessed: an amount of two decimals is stored as the centavos that it has, since the column is exact.
# Seen: @dsnp/parquetjs multiplies the number by 100 and rounds it down: 0.29 is stored as 0.28, 1.15 as 1.14, 19.99 as
# 19.98, and 80.53 and 8.57 as they are. -0.29 stays -0.29, so a sale and its refund leave a centavo. Nothing warns.
# hyparquet-writer stores all of them right.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
npm install --silent --no-audit --no-fund @dsnp/parquetjs@1.8.8 hyparquet-writer@0.17.0
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check pyarrow==26.0.1
cat > write.mjs <<'JS'
import parquet from '@dsnp/parquetjs'
import { parquetWriteFile } from 'hyparquet-writer'
const amounts = [80.53, 8.57, 0.29, -0.29, 1.15, 19.99]
const schema = new parquet.ParquetSchema({ brl: { type: 'DECIMAL', precision: 18, scale: 2 } })
const writer = await parquet.ParquetWriter.openFile(schema, 'parquetjs.parquet')
for (const brl of amounts) await writer.appendRow({ brl })
await writer.close()
parquetWriteFile({
  filename: 'hyparquet-writer.parquet', columnData: [{ name: 'brl', data: amounts }],
  schema: [{ name: 'root', num_children: 1 },
    { name: 'brl', type: 'INT64', converted_type: 'DECIMAL', precision: 18, scale: 2, repetition_type: 'REQUIRED' }],
})
JS
node write.mjs
seen=$(v/bin/python -c "
from pyarrow.parquet import read_table
for name in ['parquetjs', 'hyparquet-writer']:
    amounts = read_table(name + '.parquet')['brl'].to_pylist()
    print(name, *amounts, 'sum', sum(amounts))")
echo "$seen"
[ "$seen" = "parquetjs 80.53 8.57 0.28 -0.29 1.14 19.98 sum 110.21
hyparquet-writer 80.53 8.57 0.29 -0.29 1.15 19.99 sum 110.24" ]
