// Returns what is wrong with a page, a sentence each; see accessibility.py.
([TEXT, LARGE, PARTS]) => {
  const wrong = [];
  const shown = (e) => e.checkVisibility({ visibilityProperty: true }) && e.getClientRects().length > 0;
  const called = (e) => `${e.tagName.toLowerCase()}${e.id ? "#" + e.id : ""} '${(e.textContent || e.name || "").trim().slice(0, 40)}'`;

  // -- colours: [red, green, blue, alpha], the last and opacities 0 to 1
  const read = (text) => {
    const parts = text.match(/[\d.]+/g);
    if (text.startsWith("color(srgb")) return [...parts.slice(0, 3).map((n) => 255 * n), Number(parts[3] ?? 1)];
    return parts === null || !text.startsWith("rgb") ? null : [...parts.slice(0, 3).map(Number), Number(parts[3] ?? 1)];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const light = (c) => {
    const [r, g, b] = c.slice(0, 3).map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [more, less] = [light(a), light(b)].sort((x, y) => y - x);
    return (more + 0.05) / (less + 0.05);
  };
  const scheme = matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18, 1] : [255, 255, 255, 1];
  const once = (find) => {
    const known = new Map();
    return (e) => (known.has(e) ? known : known.set(e, find(e))).get(e);
  };
  const behind = once((e) => (e === null ? scheme : over(read(getComputedStyle(e).backgroundColor) ?? [0, 0, 0, 0], behind(e.parentElement))));
  const faded = once((e) => (e === null ? 1 : Number(getComputedStyle(e).opacity) * faded(e.parentElement)));
  const least = (style) => {
    const size = parseFloat(style.fontSize);
    return size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? LARGE : TEXT;
  };
  const legible = (element, colour, style, what) => {
    const ink = read(colour);
    if (ink === null) return wrong.push(`${called(element)}: ${what} of an unknown colour ${colour}`);
    const paper = behind(element);
    ink[3] *= faded(element);
    const found = contrast(over(ink, paper), paper);
    if (found < least(style)) wrong.push(`${called(element)}: ${what} has a contrast of ${found.toFixed(2)}`);
  };

  // -- text
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || seen.has(element) || !shown(element)) continue;
    if (element.closest("[disabled], script, style, option")) continue;
    seen.add(element);
    const style = getComputedStyle(element);
    legible(element, element instanceof SVGElement ? style.fill : style.color, style, "text");
  }

  // -- controls
  const controls = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")].filter(shown);
  for (const each of controls) {
    const text = (id) => document.getElementById(id)?.textContent.trim();
    const name =
      each.getAttribute("aria-label") ||
      (each.getAttribute("aria-labelledby") || "").split(/\s+/).map(text).join("") ||
      [...(each.labels ?? [])].map((label) => label.textContent.trim()).join("") ||
      each.textContent.trim() ||
      each.getAttribute("title");
    const bare = each.matches("input, select, textarea") && !each.labels.length && !each.ariaLabel && !each.getAttribute("aria-labelledby");
    if (!name || bare) wrong.push(`${called(each)} has no name`);
    if (each.disabled) continue;
    const style = getComputedStyle(each);
    if (each.matches("input, select, textarea")) legible(each, style.color, style, "what is typed");
    if (each.placeholder && !each.value) {
      const inside = getComputedStyle(each, "::placeholder");
      const ink = read(inside.color);
      ink[3] *= Number(inside.opacity);
      legible(each, `rgba(${ink.join(",")})`, style, "the placeholder");
    }
    const outside = behind(each.parentElement);
    // a button that looks like a word needs no edge
    if (each.matches("button:not(.term), input:not([type=checkbox], [type=radio], [type=file], [type=hidden]), select, textarea")) {
      const edge = parseFloat(style.borderTopWidth) > 0 ? over(read(style.borderTopColor), outside) : outside;
      const found = Math.max(contrast(edge, outside), contrast(behind(each), outside));
      const isText = each.matches("button") && parseFloat(style.borderTopWidth) === 0 && read(style.backgroundColor)[3] === 0;
      if (found < PARTS && !isText) wrong.push(`${called(each)}: its edge has a contrast of ${found.toFixed(2)}`);
    }
    each.focus({ preventScroll: true, focusVisible: true });
    if (document.activeElement !== each) continue;
    const ring = each.matches("svg *") ? getComputedStyle(each.querySelector("circle") ?? each) : getComputedStyle(each);
    const drawn = each.matches("svg *") ? [ring.stroke, ring.strokeWidth] : [ring.outlineColor, ring.outlineStyle === "none" ? "0" : ring.outlineWidth];
    const ringed = parseFloat(drawn[1]) >= 2 ? contrast(over(read(drawn[0]), outside), outside) : 1;
    if (ringed < PARTS) wrong.push(`${called(each)}: its focus has a contrast of ${ringed.toFixed(2)}`);
    each.blur();
  }

  // -- the page
  if (!document.documentElement.lang) wrong.push("no language");
  if (!document.title.trim()) wrong.push("no title");
  const skip = document.querySelector("a[href], button, input, select, textarea");
  if (!skip?.hash || document.querySelector(skip.hash) === null) wrong.push("no way past the navigation");
  const levels = [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].filter(shown).map((h) => Number(h.tagName[1]));
  if (levels.filter((level) => level === 1).length !== 1 || levels[0] !== 1) wrong.push(`headings ${levels}: not one h1 first`);
  if (levels.some((level, i) => i > 0 && level > levels[i - 1] + 1)) wrong.push(`headings ${levels}: one is left out`);
  for (const image of document.querySelectorAll("img:not([alt])")) wrong.push(`${called(image)} has no text`);
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i))) wrong.push(`two elements are #${id}`);
  return wrong;
}
