// What the server refuses is said in one sentence above the page.
"use strict";

const said = () => document.getElementById("said");

function say(text) {
  said().textContent = text;
  said().hidden = text === "";
}

// a page fetched of itself every few seconds does not take back what was said of an act
document.addEventListener("htmx:beforeRequest", (event) => {
  const { verb, path } = event.detail.requestConfig;
  if (verb !== "get" && path.startsWith(document.body.dataset.api)) say("");
});

// what is clicked before htmx has seen it must not leave the page
document.addEventListener("submit", (event) => {
  if (event.target.matches("[hx-post]")) event.preventDefault();
});

document.addEventListener("htmx:responseError", (event) => {
  const text = event.detail.xhr.responseText;
  try {
    say(JSON.parse(text).error);
  } catch {
    say(text);
  }
});

document.addEventListener("htmx:sendError", () => {
  say("The studio does not answer: start it again with `focuscrawl studio`, and open the address it prints.");
});

// what it answers takes that back
function answers() {
  if (said().textContent.startsWith("The studio does not answer")) say("");
}

document.addEventListener("htmx:afterRequest", (event) => {
  if (!event.detail.successful) return;
  answers();
  const { clears } = event.detail.elt.dataset; // a field that has done its work
  if (clears) document.getElementById(clears).value = "";
});
