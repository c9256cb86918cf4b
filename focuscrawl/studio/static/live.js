// The page of a running crawl: each event of one stream has the complete state. Texts are never set as HTML.
"use strict";

(() => {
  const SHOWN = 10; // latest fetches
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
  const percent = (share) => `${(100 * share).toFixed(0)} %`;
  const number = (n, digits = 3) => (n === null || n === undefined ? "–" : n.toFixed(digits));

  function duration(seconds) {
    if (seconds < 90) return `${Math.ceil(seconds)} s`;
    if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
    return seconds < 129600 ? `${(seconds / 3600).toFixed(1)} h` : `${(seconds / 86400).toFixed(1)} days`;
  }

  function stateWords(state) {
    if (state.running && state.wanted === "stop") return "stopping after the fetches in progress";
    if (state.running && state.wanted === "pause" && state.state !== "paused") return "pausing after the fetches in progress";
    return state.state;
  }

  function cell(value, name, label) {
    const element = document.createElement("td");
    if (name) element.className = name;
    if (label) element.dataset.label = label;
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

  function line(text, element = "span") {
    const shown = document.createElement(element);
    shown.className = "line";
    shown.textContent = text;
    return shown;
  }

  function pageLink(fetch) {
    const link = line(fetch.title || fetch.url, "a");
    link.href = `${root.dataset.page}?url=${encodeURIComponent(fetch.url)}`;
    const shown = document.createElement("span");
    shown.append(link, line(fetch.title ? fetch.url : "", "small"));
    return shown;
  }

  function referrerLink(fetch) {
    const shown = document.createElement("span");
    shown.append(line(fetch.referrer === null ? "a start page" : fetch.anchor || "(no link text)"));
    if (fetch.referrer !== null) shown.append(line(fetch.referrer, "small"));
    return shown;
  }

  function relevanceOf(fetch) {
    const shown = document.createElement("span");
    shown.className = fetch.outcome === "page" && fetch.relevance > 0.5 ? "pill running" : "pill";
    shown.textContent = fetch.outcome === "page" ? number(fetch.relevance, 2) : fetch.outcome;
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
    const overall = curve.loss.map((loss) => 1 - loss);
    const data = [curve.fetches, overall, curve.harvest];
    if (plot !== null) {
      plot.setData(data);
    } else {
      // the legend shows the values under the pointer, or else the latest
      const shown = (format) => (plot, value, series) => format(value ?? plot.data[series].at(-1), 2);
      const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
      plot = new uPlot(
        {
          width: at("curve").clientWidth,
          height: 260,
          scales: { x: { time: false }, y: { range: [0, 1] } },
          series: [
            { label: "fetches", value: shown(whole) },
            { label: "all fetches", value: shown(number), stroke: colour("--soft"), width: 2, dash: [6, 3] },
            { label: "last 100 fetches", value: shown(number), stroke: colour("--harvest"), width: 2 },
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
        .map(([n, i]) => [cell(whole(n), "n"), cell(number(overall[i]), "n"), cell(number(curve.harvest[i]), "n")]),
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
    text("state", stateWords(state));
    at("state").className = `pill ${state.state === "paused" ? "paused" : state.running ? "running" : ""}`;
    const caughtUp = state.read === state.fetched;
    text("relevant", caughtUp ? whole(state.relevant) : "…");
    text("share", caughtUp && state.fetched ? `${percent(state.relevant / state.fetched)} of the fetches` : "");
    text("fetched", whole(state.fetched));
    text("of-budget", state.budget ? `of ${whole(state.budget)}` : "no limit");
    show("spent", state.budget > 0);
    at("spent").value = state.budget ? Math.min(state.fetched / state.budget, 1) : 0;
    text("recent", number(state.recent_harvest_rate, 2));
    text("recall", state.recall === null ? "–" : percent(state.recall[0]));
    text("recall-range", state.recall === null ? "not estimated yet" : `${percent(state.recall[1])} to ${percent(state.recall[2])}, with a probability of 90 %`);
    text("errors", whole(state.errors));
    text("error-share", state.fetched ? `${percent(state.errors / state.fetched)} of the fetches` : "");
    text("left", state.seconds_left === null ? "–" : duration(state.seconds_left));
    text("speed", state.running ? `${number(state.pages_per_second, 1)} pages/s` : "the crawl is not running");
    const waiting = state.waiting;
    show("changed", state.changed !== "");
    text("changed", state.changed);
    show("targets", state.targets !== null);
    text("targets-found", state.targets || "");
    text("waiting", waiting.at === null ? "–" : whole(waiting.total));
    show("pause", state.running && state.wanted === "run");
    show("resume", state.wanted === "pause");
    show("stop", state.running && state.wanted !== "stop");
    const spent = !state.running && state.budget > 0 && state.fetched >= state.budget;
    show("go-on", !state.running && !spent && state.wanted !== "pause");
    text("budget-summary", spent ? "Continue the crawl with a larger budget" : "Change the budget");
    at("to-judge")?.classList.toggle("main", state.running);
    at("to-export").classList.toggle("main", !state.running || at("to-judge") === null);
    const budget = at("budget");
    if (budget !== null && budget.value === "" && document.activeElement !== budget) budget.placeholder = String(state.budget);

    show("exhausted", state.exhausted);
    show("alarm", state.alarm !== null);
    if (state.alarm !== null) {
      text("alarm-sentence", state.alarm.sentence);
      text("alarm-text", state.alarm.text);
      const shown = state.alarm.proposals.join("\n");
      const proposals = at("proposals");
      if (proposals !== null && proposals.dataset.shown !== shown) {
        proposals.dataset.shown = shown;
        proposals.replaceChildren(...state.alarm.proposals.map(markButton));
      }
    }

    show("nothing", state.fetched === 0 && state.running);
    if (state.read > 0) draw(state.curve);
    setRows(
      "latest",
      state.latest.slice(0, SHOWN).map((fetch) => [
        cell(whole(fetch.seq), "n", "fetch"),
        cell(relevanceOf(fetch), "n"),
        cell(pageLink(fetch), "text"),
        cell(referrerLink(fetch), "text", "found by"),
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
    if (state.lessons.length === 0) setEmpty("lessons", 7, "No training yet. Strategies with a model train the model after ten fetches");
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
