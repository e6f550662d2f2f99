"use strict";
// Keys and rows. Every page is whole without this script.
(() => {
  const by = id => document.getElementById(id);

  // The sum of the rows that are chosen.
  const sum = by("chosen-sum");
  const money = new Intl.NumberFormat(document.documentElement.lang, {style: "currency", currency: "BRL"});
  const add = () => {
    const boxes = [...sum.form.querySelectorAll("input[name=id]:checked")];
    const centavos = boxes.reduce((all, box) => all + Number(box.dataset.amount || 0), 0);
    sum.value = boxes.length ? `${boxes.length} · ${money.format(centavos / 100)}` : "";
  };
  if (sum) { sum.form.addEventListener("change", add); add(); }

  // Single letters, which can be switched off.
  const dialog = by("keys"), choice = by("letters"), open = by("keys-open"), find = document.querySelector("input[name=q]");
  if (!dialog) return;
  const kept = value => {
    try {
      if (value !== undefined) localStorage.setItem("centavo-letters", value);
      return localStorage.getItem("centavo-letters");
    } catch { return null; }
  };
  choice.checked = kept() !== "off";
  choice.addEventListener("change", () => kept(choice.checked ? "on" : "off"));
  open.hidden = false;
  open.addEventListener("click", () => dialog.showModal());
  const rows = () => [...document.querySelectorAll("main tbody tr, main .timeline li")].filter(row => row.querySelector("a, button, input"));
  const move = by => {
    const all = rows();
    const at = all.findIndex(row => row.contains(document.activeElement));
    const row = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)];
    if (row) (row.querySelector("a") || row.querySelector("button, input")).focus();
  };
  const choose = () => {
    const row = document.activeElement.closest("tr");
    const box = row && row.querySelector("input[type=checkbox]");
    if (box) box.click();
  };
  const keys = {"?": () => dialog.showModal(), "/": () => find && find.focus(), j: () => move(1), k: () => move(-1), x: choose};
  document.addEventListener("keydown", event => {
    const isText = event.target.closest("textarea, select, input:not([type=checkbox])");
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || isText || dialog.open || !choice.checked) return;
    const does = keys[event.key];
    if (does) { event.preventDefault(); does(); }
  });
})();
