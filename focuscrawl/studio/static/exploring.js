// The map of hosts: highlights the links of the host under the pointer or with the focus.
"use strict";

function show(event, on) {
  const host = event.target.closest?.(".map .host");
  if (!host) return;
  const place = host.dataset.host;
  const map = host.closest("svg");
  map.classList.toggle("chosen", on);
  const near = new Set([place]);
  for (const link of map.querySelectorAll(".link")) {
    const ends = link.dataset.ends.split(" ");
    const touches = ends.includes(place);
    link.classList.toggle("near", on && touches);
    if (touches) ends.forEach((end) => near.add(end));
  }
  for (const each of map.querySelectorAll(".host")) {
    each.classList.toggle("near", on && near.has(each.dataset.host));
  }
}

for (const kind of ["mouseover", "focusin"]) document.addEventListener(kind, (event) => show(event, true));
for (const kind of ["mouseout", "focusout"]) document.addEventListener(kind, (event) => show(event, false));
