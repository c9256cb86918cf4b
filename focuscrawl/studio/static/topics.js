// Files of URLs or bookmarks, dropped on a field or chosen: adds their URLs to the field.
"use strict";

async function urlsOf(file) {
  const text = await file.text();
  if (!/<a\s|<dl/i.test(text)) return text.split("\n");
  const answer = await fetch(`${document.body.dataset.api}/bookmarks`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ text }),
  });
  const found = await answer.json();
  if (answer.ok) return found.map((each) => each.url);
  showMessage(found.error);
  return [];
}

async function addUrls(field, file) {
  const lines = [...field.value.split("\n"), ...(await urlsOf(file))];
  field.value = [...new Set(lines.map((line) => line.trim()).filter(Boolean))].join("\n");
  field.focus();
}

document.addEventListener("dragover", (event) => {
  if (event.target.closest("[data-drop]") && event.dataTransfer.types.includes("Files")) event.preventDefault();
});

document.addEventListener("drop", (event) => {
  const field = event.target.closest("[data-drop]");
  if (!field || !event.dataTransfer.files.length) return;
  event.preventDefault();
  for (const file of event.dataTransfer.files) addUrls(field, file);
});

document.addEventListener("change", (event) => {
  const into = event.target.dataset.into;
  if (into) for (const file of event.target.files) addUrls(document.getElementById(into), file);
});
