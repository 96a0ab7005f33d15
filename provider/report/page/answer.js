// The head of the page: will the model run on the target, what stops it, how long does it take?

function answerOf(target) {
  const {summary, label, line, advice} = TARGETS[target];
  const name = /^[AM]\d/.test(label) ? `The ${label}` : label;
  if (summary.nodes === summary.folded_nodes) return "Nothing to run: every node is constant.";
  const share = summary.engine_macs_share;
  if (share === null && summary.macs !== 0) return line + ".";
  const left = summary.cpu_nodes;
  const rest = left > 0 ? counted(left, "node") + (left === 1 ? " stays" : " stay") + " on the CPU"
    : advice.items.length ? "parts of nodes stay on the CPU" : "nothing stays on the CPU";
  if (summary.engine_nodes === 0) return `${name} runs none of this model on its Neural Engine: ${rest}.`;
  const what = share === null
    ? `${summary.engine_nodes} of ${counted(summary.engine_nodes + left, "node")}`
    : `${percent(share)} of this model's MACs`;
  return `${name} runs ${what} on its Neural Engine, in ${counted(summary.engine_segments, "segment")}; ${rest}.`;
}

function estimateOf(target) {
  const {summary, rates, advice} = TARGETS[target];
  const parts = [];
  const first = advice.items[0];
  if (first && first.rule !== "latency") {
    parts.push("What stops it first: ", el("b", {}, printable(first.sentence || first.quote || first.rule)),
               ` (${counted(first.gain.nodes, "node")}). `);
  }
  if (rates === null) {
    parts.push("No times: rates of this target are not published.");
  } else if (summary.estimate_us === null) {
    const engine = TARGETS[target].segments.reduce((sum, segment) => sum + (segment.us ?? 0), 0);
    parts.push(...(engine ? ["Its engine segments take about ", el("b", {}, timeText(engine)), " a run (estimate); the time "]
                          : ["No estimate: the time "]), "of the CPU nodes is not known.");
  } else {
    parts.push("A run takes about ", el("b", {}, timeText(summary.estimate_us)));
    if (summary.cpu_us !== null) {
      const faster = summary.cpu_us / summary.estimate_us;
      parts.push(", on its CPU alone about ", el("b", {}, timeText(summary.cpu_us)));
      if (faster >= 1.05) parts.push(`: ${faster.toFixed(1)} times as long`);
      if (faster < 0.95) parts.push(": the split costs more than it gains");
    }
    parts.push(" (estimates).");
  }
  return parts;
}

function showAnswer() {
  const {summary} = TARGETS[state.target];
  byId("answer").textContent = answerOf(state.target);
  byId("estimate").replaceChildren(...estimateOf(state.target));
  const share = summary.engine_macs_share, bar = byId("share");
  bar.hidden = share === null;
  bar.replaceChildren(el("i", {}));
  bar.firstChild.style.width = `${100 * (share ?? 0)}%`;
  bar.title = share === null ? "" : `${percent(share)} of MACs on the engine`;
  for (const [i, tab] of [...byId("picker").children].entries()) {
    tab.setAttribute("aria-selected", String(i === state.target));
    tab.tabIndex = i === state.target ? 0 : -1;
  }
}

function showPicker() {
  if (TARGETS.length < 2) return;
  const tabs = TARGETS.map((_, i) => el("button", {
    type: "button", role: "tab", onclick: () => chooseTarget(i),
    onkeydown: event => {
      const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
      if (step === undefined) return;
      event.preventDefault();
      chooseTarget((i + step + TARGETS.length) % TARGETS.length);
      byId("picker").children[state.target].focus();
    },
  }, titleOf(i).replace(/ \(.*/, "")));
  byId("picker").replaceChildren(...tabs);
}

function showFile() {
  const file = DATA.path.split("/").pop() || "model";
  document.title = `${cut(file, 60)}: Anemone report`;
  const facts = [counted(DATA.file_nodes, "node")];
  const macs = TARGETS[0].summary.macs;
  facts.push(macs === null ? "MACs unknown" : macs === 0 ? "no MACs" : `${short(macs)} MACs`);
  facts.push(...DATA.opsets.slice(0, 4).map(([domain, version]) => `${cut(domain || "opset", 30)} ${version}`));
  byId("file").replaceChildren(el("strong", {}, nameText(file, 70)), el("span", {}, facts.join(" \u00b7 ")));
}

function showFree() {
  const dims = DATA.free_dimensions, box = byId("free");
  if (!dims.length) return;
  box.hidden = false;
  const names = dims.slice(0, 20).map(dim => {
    const {input, axis} = dim.inputs[0];
    const label = dim.name ?? (axis === null ? `the rank of ${input}` : `${input}[${axis}]`);
    const uses = dim.inputs.map(place => `${cut(place.input, 40)}[${place.axis ?? "?"}]`).join(", ");
    return el("code", {title: uses}, cut(label, 40));
  });
  box.className = "box";
  box.replaceChildren(
    el("p", {}, el("b", {}, dims.length === 1 ? "One dimension is free: " : `${dims.length} dimensions are free: `),
       names.flatMap((name, i) => i ? [" ", name] : [name]),
       ". Sizes after them are not known, and neither is where those nodes run."),
    el("p", {}, "Bind them, for example: "), el("pre", {}, printable(DATA.bind.join(" "))));
}

function showFooter() {
  const {status, route, rates} = TARGETS[state.target];
  byId("footer").replaceChildren(
    el("p", {}, `Anemone ${DATA.version}, ${route === "mil" ? "via Core ML (mil)" : "compiled directly (netplist)"}. `,
       `Rules that accepted nodes: ${statusText(status)}. `,
       rates === null ? "" : `Times are estimates (${statusText(rates.status)}; ${printable(rates.source)}), not measurements.`),
    el("p", {}, "Keys in the graph: arrows move between nodes, Enter opens one, Escape closes it, + and \u2212 zoom, 0 fits, / searches."));
}

watch("target", () => { showAnswer(); showFooter(); });
