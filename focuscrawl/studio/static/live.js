// The page of a running crawl: each event of one stream has the complete state. Texts are never set as HTML.
"use strict";

(() => {
  const root = document.getElementById("live");
  const at = (id) => document.getElementById(id);
  const text = (id, value) => {
    const element = at(id);
    if (element !== null && element.textContent !== value) element.textContent = value;
  };
  const show = (id, shown) => {
    const element = at(id);
    if (element !== null) element.hidden = !shown;
  };
  const whole = (n) => n.toLocaleString("en-US");
  const number = (n, digits = 3) => (n === null || n === undefined ? "–" : n.toFixed(digits));

  function cell(value, name) {
    const element = document.createElement("td");
    if (name) element.className = name;
    if (value instanceof Node) element.append(value);
    else element.textContent = value;
    return element;
  }

  function setRows(id, cellRows) {
    const body = at(id);
    body.replaceChildren(
      ...cellRows.map((cells) => {
        const row = document.createElement("tr");
        row.append(...cells);
        return row;
      }),
    );
  }

  function setEmpty(id, columns, message) {
    const only = cell(message);
    only.colSpan = columns;
    setRows(id, [[only]]);
  }

  function pageLink(fetch) {
    const link = document.createElement("a");
    link.href = `${root.dataset.page}?url=${encodeURIComponent(fetch.url)}`;
    link.textContent = fetch.title || fetch.url;
    const shown = document.createElement("span");
    const address = document.createElement("small");
    address.textContent = fetch.title ? fetch.url : "";
    shown.append(link, address);
    return shown;
  }

  function referrerLink(fetch) {
    const shown = document.createElement("span");
    shown.textContent = fetch.referrer === null ? "a start page" : fetch.anchor || "(no link text)";
    if (fetch.referrer !== null) {
      const address = document.createElement("small");
      address.textContent = fetch.referrer;
      shown.append(address);
    }
    return shown;
  }

  function bar(n, most) {
    const shown = document.createElement("progress");
    shown.max = Math.max(most, 1);
    shown.value = n;
    shown.setAttribute("aria-hidden", "true");
    return shown;
  }

  // -- curves -------------------------------------------------------------------------------

  let plot = null;
  let drawn = "";
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function draw(curve) {
    const version = `${curve.fetches.length} ${curve.fetches.at(-1)}`;
    if (version === drawn && plot !== null) return;
    drawn = version;
    const data = [curve.fetches, curve.loss, curve.harvest];
    if (plot !== null) {
      plot.setData(data);
    } else {
      const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
      plot = new uPlot(
        {
          width: at("curve").clientWidth,
          height: 260,
          scales: { x: { time: false }, y: { range: [0, 1] } },
          series: [
            { label: "fetches" },
            { label: "loss rate, all", stroke: colour("--loss"), width: 2 },
            { label: "harvest rate, last 100", stroke: colour("--harvest"), width: 2, dash: [6, 3] },
          ],
          axes: [axis, axis],
        },
        data,
        at("curve"),
      );
    }
    const every = Math.max(1, Math.ceil(curve.fetches.length / 20));
    const last = curve.fetches.length - 1;
    setRows(
      "curve-rows",
      curve.fetches
        .map((n, i) => [n, i])
        .filter(([, i]) => i % every === 0 || i === last)
        .map(([n, i]) => [cell(whole(n), "n"), cell(number(curve.loss[i]), "n"), cell(number(curve.harvest[i]), "n")]),
    );
  }

  window.addEventListener("resize", () => {
    if (plot !== null) plot.setSize({ width: at("curve").clientWidth, height: 260 });
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    if (plot === null) return;
    plot.destroy();
    plot = null;
    if (last !== null) draw(last.curve);
  });

  // -- numbers and tables -------------------------------------------------------------------

  let last = null;

  function render(state) {
    last = state;
    text("state", state.wanted === "pause" && state.running && state.state !== "paused" ? "pauses after the fetches in progress" : state.state);
    text("fetched", whole(state.fetched));
    text("of-budget", state.budget ? ` of ${whole(state.budget)}` : "");
    text("harvest", number(state.harvest_rate));
    text("recent", number(state.recent_harvest_rate));
    text("speed", state.running ? number(state.pages_per_second, 1) : "–");
    const waiting = state.waiting;
    show("targets", state.targets !== null);
    text("targets-found", state.targets || "");
    text("waiting", waiting.at === null ? "–" : whole(waiting.total));
    show("pause", state.running && state.wanted !== "pause");
    show("resume", state.wanted === "pause");
    show("stop", state.running);
    show("go-on", !state.running && state.wanted !== "pause");
    const budget = at("budget");
    if (budget !== null && budget.value === "" && document.activeElement !== budget) budget.placeholder = String(state.budget);

    show("alarm", state.alarm !== null);
    if (state.alarm !== null) {
      text("alarm-text", state.alarm.text);
      const shown = state.alarm.proposals.join("\n");
      const proposals = at("proposals");
      if (proposals.dataset.shown !== shown) {
        proposals.dataset.shown = shown;
        proposals.replaceChildren(...(at("asks") === null ? [] : state.alarm.proposals.map(markButton)));
      }
    }

    show("nothing", state.fetched === 0 && state.running);
    if (state.read > 0) draw(state.curve);
    setRows(
      "latest",
      state.latest.map((fetch) => [
        cell(whole(fetch.seq), "n"),
        cell(fetch.outcome === "page" ? number(fetch.relevance, 2) : fetch.outcome, "n"),
        cell(number(fetch.score, 2), "n"),
        cell(pageLink(fetch)),
        cell(referrerLink(fetch)),
      ]),
    );
    const most = Math.max(...waiting.bins, waiting.seeds);
    const bins = waiting.bins.map((n, i) => [cell(`${(i / 10).toFixed(1)} to ${((i + 1) / 10).toFixed(1)}`), cell(whole(n), "n"), cell(bar(n, most))]).reverse();
    if (waiting.seeds) bins.unshift([cell("start pages"), cell(whole(waiting.seeds), "n"), cell(bar(waiting.seeds, most))]);
    setRows("bins", bins);
    text("bins-of", waiting.at === null ? "" : `Counted at ${waiting.at.replace("T", " ").replace("+00:00", " UTC")}`);
    if (state.hosts.length === 0) setEmpty("hosts", 3, "No host yet");
    else setRows("hosts", state.hosts.map((each) => [cell(each.host), cell(whole(each.fetches), "n"), cell(number(each.relevance / each.fetches, 2), "n")]));
    if (state.outcomes.length === 0) setEmpty("outcomes", 2, "Every fetch returned a page");
    else setRows("outcomes", state.outcomes.map((each) => [cell(each.outcome, each.error ? "wrong" : ""), cell(whole(each.fetches), "n")]));
    if (state.lessons.length === 0) setEmpty("lessons", 7, "No training yet. Strategies that learn train after ten fetches");
    else
      setRows(
        "lessons",
        state.lessons.map((each) => [
          cell(whole(each.lesson), "n"),
          cell(whole(each.at), "n"),
          cell(whole(each.instances), "n"),
          ...[each.auc, each.predicted, each.relevance, each.drift].map((value) => cell(number(value, 2), "n")),
        ]),
      );
  }

  function markButton(name) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = `Add ${name} to the topic`;
    button.addEventListener("click", () => htmx.ajax("POST", `${root.dataset.api}/mark`, { values: { class: name }, swap: "none", source: button }));
    return button;
  }

  // -- stream of events ---------------------------------------------------------------------

  const stream = new EventSource(`${root.dataset.api}/events`);
  stream.addEventListener("state", (event) => {
    show("wrong", false);
    clearConnectionError();
    render(JSON.parse(event.data));
  });
  stream.addEventListener("wrong", (event) => {
    stream.close();
    text("wrong", JSON.parse(event.data).error);
    show("wrong", true);
  });
  stream.addEventListener("error", () => {
    text("wrong", "The studio does not answer. This page shows the last known state and reconnects every few seconds.");
    show("wrong", true);
  });
})();
