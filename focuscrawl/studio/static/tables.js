// Tables: chosen columns, selected rows, judging in rows, a drawer for one page, sorting of short tables.
"use strict";

// -- columns: the choice is kept in this browser

function hiddenColumns(table) {
  try {
    const hidden = JSON.parse(localStorage.getItem(`hidden-${table}`));
    if (hidden) return new Set(hidden);
  } catch {
    // the choice cannot be read: show the first columns
  }
  const boxes = [...document.querySelectorAll("[data-shows]")].filter((each) => !each.defaultChecked);
  return new Set(boxes.map((each) => each.dataset.shows));
}

function showColumns() {
  const rows = document.getElementById("rows");
  if (!rows) return;
  const hidden = hiddenColumns(rows.dataset.table);
  for (const each of rows.querySelectorAll("[data-column]")) each.hidden = hidden.has(each.dataset.column);
  for (const each of document.querySelectorAll("[data-shows]")) each.checked = !hidden.has(each.dataset.shows);
}

document.addEventListener("change", (event) => {
  const column = event.target.dataset.shows;
  if (!column) return;
  const table = document.getElementById("rows").dataset.table;
  const hidden = hiddenColumns(table);
  if (event.target.checked) hidden.delete(column);
  else hidden.add(column);
  localStorage.setItem(`hidden-${table}`, JSON.stringify([...hidden]));
  showColumns();
});

// -- selected rows

const picks = () => [...document.querySelectorAll("[data-pick]")];

function showSelected() {
  const bar = document.getElementById("selected");
  if (!bar) return;
  const n = picks().filter((each) => each.checked).length;
  bar.hidden = n === 0;
  bar.querySelector("[data-selected-count]").textContent = `${n} ${n === 1 ? "page" : "pages"} selected`;
}

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-pick-all]")) for (const each of picks()) each.checked = event.target.checked;
  if (event.target.matches("[data-pick], [data-pick-all]")) showSelected();
});

// -- verdicts: pressing a verdict again removes it

function showVerdicts(urls, verdict) {
  const judged = new Set(urls);
  for (const each of document.querySelectorAll("[data-judge]")) {
    if (judged.has(each.dataset.url)) each.setAttribute("aria-pressed", String(each.dataset.judge === verdict));
  }
}

async function judgeRows(button, urls, verdict) {
  const path = button.closest("[data-post]").dataset.post;
  if (!(await judge(path, urls, verdict))) return;
  showVerdicts(urls, verdict);
  if (button.dataset.judge === "none") button.disabled = true; // removed
}

document.addEventListener("click", (event) => {
  const one = event.target.closest("[data-judge]");
  const all = event.target.closest("[data-judge-all]");
  if (one) {
    const verdict = one.getAttribute("aria-pressed") === "true" ? "none" : one.dataset.judge;
    judgeRows(one, [one.dataset.url], verdict);
  } else if (all) {
    const urls = picks().filter((each) => each.checked).map((each) => each.dataset.pick);
    judgeRows(all, urls, all.dataset.judgeAll);
  }
});

document.addEventListener("verdict-changed", (event) => showVerdicts(event.detail.urls, event.detail.verdict));

// -- drawer

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-drawer]");
  const drawer = document.getElementById("drawer");
  if (!link || !drawer || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  if (!drawer.contains(link)) drawer.showPopover();
  drawer.focus({ preventScroll: true });
  htmx.ajax("GET", link.dataset.drawer, { target: "#drawer-content", swap: "innerHTML scroll:#drawer:top" });
});

// -- short tables, all rows of which are on the page: sorted and filtered here

function keyOf(row, column) {
  const text = row.cells[column].textContent.trim();
  const number = Number.parseFloat(text.replaceAll(",", ""));
  return row.cells[column].matches(".n") ? (Number.isNaN(number) ? -Infinity : number) : text.toLowerCase();
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("table[data-sortable] thead button");
  if (!button) return;
  const head = button.closest("th");
  const body = head.closest("table").tBodies[0];
  const isNumber = head.matches(".n");
  const before = head.getAttribute("aria-sort");
  const ascending = before ? before === "descending" : !isNumber;
  for (const each of head.parentElement.cells) each.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  const keyed = [...body.rows].map((row) => [keyOf(row, head.cellIndex), row]);
  keyed.sort(([a], [b]) => (ascending ? compare(a, b) : compare(b, a)));
  body.append(...keyed.map(([, row]) => row));
});

document.addEventListener("input", (event) => {
  if (!event.target.matches("[data-filters]")) return;
  const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of document.querySelectorAll("table[data-sortable] tbody tr")) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
});

document.addEventListener("htmx:afterSwap", () => {
  showColumns();
  showSelected();
});
showColumns();
