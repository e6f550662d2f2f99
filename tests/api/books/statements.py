"""Statements of books, as the screens of fava show them.

Arguments: the file of the books, the first and the last day of a span of whole months. Prints JSON, centavos by
account: income statement, cash flow and balance sheet.
"""

import datetime
import json
import sys

from fava.core import FavaLedger
from fava.util.date import INTERVALS

path, *days = sys.argv[1:]
begin, end = map(datetime.date.fromisoformat, days)


def sums(trees, roots):
    found = {}
    for tree in trees:
        for name, node in tree.items():
            if name.startswith(roots) and node.balance:
                ((currency, cost), amount), = node.balance.items()
                assert (currency, cost) == ("BRL", None), node.balance
                found[name] = found.get(name, 0) + int(amount * 100)
    return found


ledger = FavaLedger(path)
assert not ledger.errors, ledger.errors
of_span = [ledger.get_filtered(time=f"{begin} - {end}").root_tree]
months = zip(*ledger.interval_balances(ledger.get_filtered(), INTERVALS["month"], "Assets:Bank"))
moved = [tree for tree, of in months if begin <= of.begin <= end]
print(json.dumps({
    "income": sums(of_span, ("Income:", "Expenses:")),
    "cash": sums(moved, "Assets:Bank:"),
    "sheet": sums(of_span, ("Assets:", "Liabilities:")),
}))
