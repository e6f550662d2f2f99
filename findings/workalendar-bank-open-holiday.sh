#!/usr/bin/env bash
# workalendar 17.0.0 beside bizdays 1.0.19 (ANBIMA) and holidays 0.109 (PyPI): the next settlement day of banks in Brazil.
# Guessed: BrazilBankCalendar has the days on which banks settle: none on the national holiday of 20 November (since 2024),
# one on Ash Wednesday, when they open at noon, and on 31 December, when only branches are closed.
# Seen: wrong on all three: money of 19 November 2026, a Thursday, is expected on the holiday instead of Monday, that of
# Carnival a day late, and that of 30 December four days late. The other class, Brazil, has Carnival as days of work, too.
# The calendar of the exchange in holidays (BVMF) has no 31 December and no 24 December either.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check workalendar==17.0.0 bizdays==1.0.19 holidays==0.109
seen=$(v/bin/python -c "
from datetime import date
from bizdays import Calendar
from holidays import financial_holidays
from workalendar.america import Brazil, BrazilBankCalendar
anbima, exchange = Calendar.load('ANBIMA'), financial_holidays('BVMF')
for day in [date(2026, 2, 13), date(2026, 2, 17), date(2026, 11, 19), date(2026, 12, 23), date(2026, 12, 30)]:
    print(f'{day:%d/%m}', *(f'{name} {next:%d/%m}' for name, next in [
        ('BrazilBankCalendar', BrazilBankCalendar().add_working_days(day, 1)), ('Brazil', Brazil().add_working_days(day, 1)),
        ('ANBIMA', anbima.offset(day, 1)), ('BVMF', exchange.get_nth_working_day(day, 1))]))")
echo "workalendar 17.0.0: $seen"
[ "$seen" = "13/02 BrazilBankCalendar 19/02 Brazil 16/02 ANBIMA 18/02 BVMF 18/02
17/02 BrazilBankCalendar 19/02 Brazil 18/02 ANBIMA 18/02 BVMF 18/02
19/11 BrazilBankCalendar 20/11 Brazil 20/11 ANBIMA 23/11 BVMF 23/11
23/12 BrazilBankCalendar 24/12 Brazil 24/12 ANBIMA 24/12 BVMF 28/12
30/12 BrazilBankCalendar 04/01 Brazil 31/12 ANBIMA 31/12 BVMF 04/01" ]
