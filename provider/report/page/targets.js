// The targets side by side, and the nodes that they place differently.

const SHOWN_DIFFERENCES = 12;

function shareCell(summary) {
  const share = summary.engine_macs_share;
  if (share === null) return [summary.macs === 0 ? "no MACs" : "?"];
  const bar = el("span.bar", {}, el("i", {}));
  bar.firstChild.style.width = `${100 * share}%`;
  return [el("span", {}, bar, percent(share))];
}

// A row with a label in each cell, so that a narrow page can stack them.
function row(cells, attributes) {
  return el("tr", attributes, cells.map(([label, value, kind]) =>
    el(kind ? `td.${kind}` : "td", {"data-label": label}, value)));
}

function tableOf(head, rows, kind = "") {
  return el(`table${kind}`, {},
    el("thead", {}, el("tr", {}, head.map(text => el("th", {scope: "col"}, text)))),
    el("tbody", {}, rows));
}

function targetRow(i) {
  const {summary, status, segments} = TARGETS[i];
  const unlike = summary.engine_segments + summary.cpu_segments;
  return row([
    ["target", el("button.link", {type: "button", onclick: () => { chooseTarget(i); scrollTo({top: 0}); }}, titleOf(i))],
    ["MACs on the engine", shareCell(summary)],
    ["nodes on the engine", summary.engine_nodes.toLocaleString("en"), "number"],
    ["on the CPU", summary.cpu_nodes.toLocaleString("en"), "number"],
    ["engine segments", `${summary.engine_segments} of ${unlike || segments.length}`, "number"],
    ["estimate", summary.estimate_us === null ? "?" : timeText(summary.estimate_us), "number"],
    ["CPU alone", summary.cpu_us === null ? "?" : timeText(summary.cpu_us), "number"],
    ["rules", statusText(status)],
  ], i === state.target ? {"aria-current": "true"} : {});
}

// Nodes whose placement is not the same on all targets: those with the most MACs first.
function differences() {
  const found = [];
  for (let node = 0; node < COUNT; ++node) {
    const entries = TARGETS.map((_, i) => i).filter(i => TARGETS[i].entries.of[node] >= 0);
    const places = new Set(entries.map(i => placeOf(i, node)));
    const isShown = entries.some(i => TARGETS[i].entries.shown[TARGETS[i].entries.of[node]] === node);
    if (places.size > 1 && isShown) {
      const macs = Math.max(...entries.map(i => TARGETS[i].entries.macs[TARGETS[i].entries.of[node]] ?? 0));
      found.push([macs, node]);
    }
  }
  return found.sort((a, b) => b[0] - a[0]).map(([, node]) => node);
}

function differenceRow(node) {
  const on = [[], [], []];
  for (let i = 0; i < TARGETS.length; ++i) on[placeOf(i, node)].push(titleOf(i).replace(/ \(.*/, ""));
  const names = list => list.length > 6 ? `${list.slice(0, 5).join(", ")} and ${list.length - 5} more` : list.join(", ") || "none";
  return row([
    ["node", el("button.link", {type: "button", onclick: () => chooseNode(node, true)}, nameText(nameOf(node), 48))],
    ["operator", cut(opOf(node), 40)],
    ["engine", names(on[ENGINE])],
    ["CPU", names(on[CPU])],
  ]);
}

function showTargets() {
  const head = ["target", "MACs on the engine", "nodes on the engine", "on the CPU", "engine segments",
                "estimate", "CPU alone", "rules"];
  // In a narrow window the rows of few targets are stacked, a table of many scrolls by itself.
  const table = tableOf(head, TARGETS.map((_, i) => targetRow(i)), TARGETS.length > 6 ? "" : ".stack");
  const parts = [el("div.wide", {tabindex: TARGETS.length > 6 ? "0" : "-1"}, table)];
  if (TARGETS.length > 1) {
    const nodes = differences();
    parts.push(el("h3", {}, nodes.length ? `${counted(nodes.length, "node")} placed differently`
                                         : "All nodes are placed alike on these targets"));
    if (nodes.length) {
      const table = tableOf(["node", "operator", "engine", "CPU"],
                            nodes.slice(0, SHOWN_DIFFERENCES).map(differenceRow), ".stack");
      parts.push(table);
      if (nodes.length > SHOWN_DIFFERENCES) {
        parts.push(el("button.more", {type: "button", onclick: event => {
          table.tBodies[0].append(...nodes.slice(SHOWN_DIFFERENCES, 500).map(differenceRow));
          event.target.remove();
        }}, `show ${Math.min(nodes.length, 500) - SHOWN_DIFFERENCES} more`));
      }
    }
  }
  byId("targets").replaceChildren(...parts);
}

watch("target", showTargets);
