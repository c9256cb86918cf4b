// g, b and s judge the page that is shown; until the next one is here nothing more is judged.
// htmx makes a form its own some milliseconds after it is shown: who is faster is heard as well.
"use strict";

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  const button = document.querySelector(`.verdict [data-key="${CSS.escape(event.key.toLowerCase())}"]`);
  if (!button || button.disabled) return;
  event.preventDefault();
  button.click();
});

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches(".verdict")) return;
  event.preventDefault();
  const buttons = [...form.querySelectorAll("button")];
  const values = { url: form.elements.url.value, verdict: event.submitter.value };
  for (const each of buttons) each.disabled = true;
  try {
    await htmx.ajax("POST", form.dataset.post, { source: form, swap: "none", values });
  } finally {
    // what is refused can be said again; of what was taken another page is shown in a moment
    setTimeout(() => buttons.forEach((each) => (each.disabled = false)), 1000);
  }
});
