// Prints the scheme of every six-digit prefix by two public tables, in runs: first, last, one, other.
// Of a brand that has no name here there is `other`.
const cardTypes = require("credit-card-type");
const { getCreditCardNameByNumber } = require("creditcard.js");

const NAMES = {
  visa: "visa", mastercard: "mastercard", "american-express": "amex", amex: "amex", elo: "elo", hipercard: "hipercard",
  "diners-club": "diners", diners: "diners", discover: "discover", jcb: "jcb",
};
// creditcard.js takes whole numbers alone: sixteen digits, fifteen of Amex and JCB, fourteen of Diners.
const byNumber = (prefix) => {
  const names = [16, 15, 14].map((length) => getCreditCardNameByNumber(String(prefix).padEnd(length, "0")).toLowerCase());
  return names.map((name) => NAMES[name]).find((name) => name) || "other";
};
const byPrefix = (prefix) => {
  const found = cardTypes(String(prefix));
  const best = found.length === 1 ? found[0] : found.find((type) => type.matchStrength);
  return NAMES[(best || {}).type] || "other";
};
let run;
for (let prefix = 100000; prefix <= 999999; prefix += 1) {
  const [one, other] = [byPrefix(prefix), byNumber(prefix)];
  if (run && run[2] === one && run[3] === other) {
    run[1] = prefix;
  } else {
    if (run) console.log(run.join(" "));
    run = [prefix, prefix, one, other];
  }
}
console.log(run.join(" "));
