// Shows the server's error messages above the page.
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

document.addEventListener("htmx:responseError", (event) => {
  const text = event.detail.xhr.responseText;
  try {
    showMessage(JSON.parse(text).error);
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
  const { clears } = event.detail.elt.dataset; // id of the field to empty
  if (clears) document.getElementById(clears).value = "";
});
