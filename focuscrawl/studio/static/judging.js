// The keys g, b and s judge the current page. The buttons are disabled until the next page is loaded.
// Forms are sent from here, because htmx handles a new form only some milliseconds after it is shown.
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
    // after an error the person can judge again; after success the next page replaces this form
    setTimeout(() => buttons.forEach((each) => (each.disabled = false)), 1000);
  }
});
