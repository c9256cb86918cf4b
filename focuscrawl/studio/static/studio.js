// Shows the server's error messages above the page, and errors of fields below their fields.
"use strict";

const message = () => document.getElementById("message");

function showMessage(text) {
  message().textContent = text;
  message().hidden = text === "";
}

// requests that a page repeats every few seconds (GET) must not clear the message about an action
document.addEventListener("htmx:beforeRequest", (event) => {
  const { verb, path } = event.detail.requestConfig;
  if (verb !== "get" && path.startsWith(document.body.dataset.api)) showMessage("");
});

// a form that is submitted before htmx handles it must not leave the page
document.addEventListener("submit", (event) => {
  if (event.target.matches("[hx-post]")) event.preventDefault();
});

function clearFieldErrors(form) {
  for (const each of form.querySelectorAll(".field-error")) each.remove();
  for (const field of form.querySelectorAll("[aria-invalid]")) {
    field.removeAttribute("aria-invalid");
    const left = (field.getAttribute("aria-describedby") || "").split(" ").filter((id) => id !== `${field.id}-error`);
    if (left.join("")) field.setAttribute("aria-describedby", left.join(" "));
    else field.removeAttribute("aria-describedby");
  }
}

// returns the messages without a field in the form
function showFieldErrors(form, errors) {
  const shown = [];
  const rest = [];
  for (const [name, text] of Object.entries(errors)) {
    const field = form.elements[name];
    if (!(field instanceof Element) || field.type === "hidden") {
      rest.push(text);
      continue;
    }
    const note = document.createElement("small");
    note.className = "wrong field-error";
    note.id = `${field.id}-error`;
    note.textContent = text;
    field.after(note);
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-describedby", `${field.getAttribute("aria-describedby") || ""} ${note.id}`.trim());
    for (let each = field.closest("details"); each; each = each.parentElement.closest("details")) each.open = true;
    shown.push(field);
  }
  shown[0]?.focus();
  return rest.join(" ");
}

document.addEventListener("htmx:responseError", (event) => {
  const text = event.detail.xhr.responseText;
  const form = event.detail.elt.closest("form");
  try {
    const { error, fields } = JSON.parse(text);
    if (form) clearFieldErrors(form);
    showMessage(fields && form ? showFieldErrors(form, fields) : error);
  } catch {
    showMessage(text);
  }
});

document.addEventListener("htmx:sendError", () => {
  showMessage("The studio does not answer. Start `focuscrawl studio` again and open the address that it prints.");
});

function clearConnectionError() {
  if (message().textContent.startsWith("The studio does not answer")) showMessage("");
}

document.addEventListener("htmx:afterRequest", (event) => {
  if (!event.detail.successful) return;
  clearConnectionError();
  if (event.detail.elt.matches("form")) clearFieldErrors(event.detail.elt);
  const { clears } = event.detail.elt.dataset; // id of the field to empty
  if (clears) document.getElementById(clears).value = "";
});

// "back" shows a page as it was left: with buttons that htmx disabled for the request that led to the next page
window.addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  for (const each of document.querySelectorAll("[data-disabled-by-htmx], .htmx-request")) {
    for (const name of ["disabled", "data-disabled-by-htmx"]) each.removeAttribute(name);
    each.classList.remove("htmx-request");
    each["htmx-internal-data"].requestCount = 0;
  }
});
