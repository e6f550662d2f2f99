// Sends what a form of "try it" shows, with the key of a sandbox. Key and values stay in this tab.
const value = (name) => sessionStorage.getItem(name) ?? "";
const inputs = [...document.querySelectorAll("#values input")];

function keep(name, text) {
  sessionStorage.setItem(name, text);
  for (const input of inputs) if (input.name === name && input.value !== text) input.value = text;
}

for (const input of inputs) {
  input.value = value(input.name);
  input.addEventListener("input", () => keep(input.name, input.value));
}

async function send(form) {
  if (!value("KEY").startsWith("test_")) return "A key of a sandbox is needed: it begins with test_.";
  const filled = (text) => text.replace(/\$([A-Z_]+)/g, (_, name) => value(name));
  const headers = { Authorization: `Bearer ${value("KEY")}` };
  const request = { method: form.dataset.method, headers };
  if (request.method === "POST") headers["Idempotency-Key"] = crypto.randomUUID?.() ?? String(Math.random());
  if (form.elements.body) {
    headers["Content-Type"] = "application/json";
    request.body = filled(form.elements.body.value);
  }
  const answer = await fetch(filled(form.elements.path.value), request);
  const text = await answer.text();
  if (!answer.headers.get("Content-Type")?.includes("json")) return `${answer.status}\n${text}`;
  const made = JSON.parse(text);
  if (answer.ok && request.method === "POST") {
    for (const [field, name] of [["txid", "TXID"], ["card_token", "CARD_TOKEN"], ["id", form.dataset.makes]]) {
      if (made[field]) keep(name, made[field]);
    }
    if (made.breakdown) keep("SPLIT", `${made.txid}-0`);
  }
  return `${answer.status}\n${JSON.stringify(made, null, 2)}`;
}

for (const form of document.querySelectorAll(".try form")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const show = (text) => (form.querySelector("output").textContent = text);
    show("…");
    send(form).then(show, (error) => show(String(error)));
  });
}
for (const hidden of document.querySelectorAll("#values, .try")) hidden.hidden = false;
