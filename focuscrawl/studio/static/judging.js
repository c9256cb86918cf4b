// Judging: keys, verdicts that are sent at once, undo. Verdict forms are sent from here, because htmx
// handles a new form only some milliseconds after it is shown.
"use strict";

const UNDO_KEY = "judged";
const TAB_KEY = "tab";
const MOST_UNDONE = 200; // judgements that are kept for undo

function stored(key, otherwise) {
  try {
    return JSON.parse(sessionStorage.getItem(key)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

// names this tab, so that two persons are not asked about the same page
const tabName = stored(TAB_KEY, Math.random().toString(36).slice(2));
sessionStorage.setItem(TAB_KEY, JSON.stringify(tabName));

document.addEventListener("htmx:configRequest", (event) => {
  if (/\/(question|example)$/.test(event.detail.path)) event.detail.parameters.tab = tabName;
});

// -- verdicts

async function judge(path, urls, verdict, undoing = false) {
  let answer;
  try {
    answer = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ urls, verdict, tab: tabName }),
    });
  } catch {
    document.dispatchEvent(new Event("htmx:sendError"));
    return false;
  }
  const text = await answer.text();
  if (!answer.ok) {
    showMessage(text.startsWith("{") ? JSON.parse(text).error : text);
    return false;
  }
  showMessage("");
  if (!undoing) {
    const earlier = stored(UNDO_KEY, []).slice(1 - MOST_UNDONE);
    sessionStorage.setItem(UNDO_KEY, JSON.stringify([...earlier, { path, before: JSON.parse(text).before }]));
  }
  showUndo();
  document.dispatchEvent(new CustomEvent("verdict-changed", { detail: { urls, verdict } }));
  htmx.trigger(document.body, "judged");
  return true;
}

async function undo() {
  const earlier = stored(UNDO_KEY, []);
  const last = earlier.pop();
  if (!last) return;
  for (const verdict of new Set(Object.values(last.before))) {
    const urls = Object.keys(last.before).filter((url) => last.before[url] === verdict);
    if (!(await judge(last.path, urls, verdict, true))) return; // can be tried again
  }
  sessionStorage.setItem(UNDO_KEY, JSON.stringify(earlier));
  showUndo();
}

function showUndo() {
  for (const each of document.querySelectorAll("[data-undo]")) each.disabled = stored(UNDO_KEY, []).length === 0;
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches(".verdict")) return;
  event.preventDefault();
  const buttons = [...form.querySelectorAll("button")];
  for (const each of buttons) each.disabled = true;
  const done = await judge(form.dataset.post, [form.elements.url.value], event.submitter.value);
  // after an error the person can judge again; after success the next page replaces this form
  setTimeout(() => buttons.forEach((each) => (each.disabled = false)), done ? 1000 : 0);
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-undo]")) undo();
});

// -- keys

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
  if (event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]")) return;
  const key = event.key.toLowerCase();
  const buttons = [...document.querySelectorAll(`.verdict [data-key="${CSS.escape(key)}"]`)];
  const button = buttons.find((each) => !each.disabled && each.checkVisibility());
  if (button) {
    event.preventDefault();
    button.click();
  } else if (key === "u") {
    event.preventDefault();
    undo();
  } else if (key === "?") {
    document.getElementById("keys")?.togglePopover();
  }
});

document.addEventListener("htmx:afterSwap", showUndo);
showUndo();
