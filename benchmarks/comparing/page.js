"use strict";

// What belongs to each row of source, wherever it is on the page.
const members = new Map();
for (const element of document.querySelectorAll("[data-rows]")) {
  for (const row of element.dataset.rows.split(" ")) {
    if (!members.has(row)) members.set(row, []);
    members.get(row).push(element);
  }
}
const told = document.getElementById("told");
let chosen = null; // the element whose rows stay marked
let lit = [];

function mark(element) {
  for (const each of lit) each.classList.remove("lit");
  lit = [];
  for (const row of element ? element.dataset.rows.split(" ") : []) lit.push(...members.get(row));
  for (const each of lit) each.classList.add("lit");
}

function choose(element) {
  chosen = element;
  mark(element);
  const rows = element ? element.dataset.rows.split(" ") : [];
  for (const button of document.querySelectorAll("button[data-rows]")) {
    button.setAttribute("aria-pressed", String(rows.includes(button.dataset.rows)));
  }
  told.textContent = element ? summary() : "";
}

// How many operations are marked, in each column.
function summary() {
  const counts = new Map();
  for (const link of new Set(lit.filter((each) => each.matches("td a")))) {
    const name = link.closest("td").dataset.name;
    counts.set(name, (counts.get(name) || 0) + 1);
  }
  const parts = [...counts].map(([name, count]) => `${name}: ${count}`);
  return parts.length ? `Operations marked: ${parts.join("; ")}` : "No operation is left of this.";
}

const near = (event) =>
  event.target instanceof Element ? event.target.closest("[data-rows]") : null;
document.addEventListener("mouseover", (event) => mark(near(event) || chosen));
document.addEventListener("focusin", (event) => {
  if (near(event)) mark(near(event));
});
document.addEventListener("focusout", () => mark(chosen));
document.addEventListener("click", (event) => {
  const element = near(event);
  if (element) choose(element === chosen && element.matches("button") ? null : element);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") choose(null);
});

// The place that an address names is shown, also in a folded text.
function open() {
  const target = document.getElementById(location.hash.slice(1));
  const folded = target && target.closest("details");
  if (folded) folded.open = true;
  if (target) target.scrollIntoView({ block: "center" });
}
addEventListener("hashchange", open);
open();

for (const button of document.querySelectorAll(".copy")) {
  const text = button.nextElementSibling;
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(text);
      button.textContent = "selected";
    }
    setTimeout(() => { button.textContent = "copy"; }, 2000);
  });
}
