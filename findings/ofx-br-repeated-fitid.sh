#!/usr/bin/env bash
# ofx-br 0.1.0 (PyPI), a reader for Brazilian banks: two receipts of different days and amounts under one FITID.
# Guessed: --dedup leaves out a line that is there twice, as a statement that was fetched again has it.
# Seen: the FITID alone decides, which these banks repeat: 55.00 of 4 November is gone, without a word on the output of
# rows. Day, amount and text are not compared.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check ofx-br==0.1.0
cat > statement.ofx <<'OFX'
OFXHEADER:100
DATA:OFXSGML
VERSION:102
ENCODING:USASCII
CHARSET:1252

<OFX><BANKMSGSRSV1><STMTTRNRS><TRNUID>1<STMTRS><CURDEF>BRL
<BANKACCTFROM><BANKID>001<ACCTID>12345-6<ACCTTYPE>CHECKING</BANKACCTFROM>
<BANKTRANLIST><DTSTART>20261101<DTEND>20261130
<STMTTRN><TRNTYPE>CREDIT<DTPOSTED>20261103<TRNAMT>80.00<FITID>0001<MEMO>PIX MARIA</STMTTRN>
<STMTTRN><TRNTYPE>CREDIT<DTPOSTED>20261104<TRNAMT>55.00<FITID>0001<MEMO>PIX JOSE</STMTTRN>
</BANKTRANLIST></STMTRS></STMTTRNRS></BANKMSGSRSV1></OFX>
OFX
seen=$(for options in "" --dedup; do
  # shellcheck disable=SC2086
  v/bin/ofxbr statement.ofx --formato csv $options | tail -n +2 | cut -d, -f4-6 | tr -d '\r' | xargs
done)
echo "ofx-br 0.1.0: $seen"
[ "$seen" = "0001,2026-11-03,80.00 0001,2026-11-04,55.00
0001,2026-11-03,80.00" ]
