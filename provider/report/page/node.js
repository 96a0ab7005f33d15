// Everything about the chosen node, in #node.

const SHOWN_NEIGHBOURS = 8;

function badge(place) {
  return el(`span.badge.${PLACES[place]}`, {}, PLACE_WORDS[place]);
}

function facts(pairs) {
  return el("dl.facts", {}, pairs.filter(([, value]) => value !== null && value !== "").map(([name, value]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

function costText(entry) {
  if (entry.us === null) return entry.place === CPU && entry.cpuUs !== null ? `about ${timeText(entry.cpuUs)} on the CPU` : null;
  const cpu = entry.cpuUs === null ? "" : `; ${timeText(entry.cpuUs)} on the CPU`;
  return `about ${timeText(entry.us)}, limited by ${entry.limit}${cpu}`;
}

function verdictText(entry) {
  if (entry.place === FOLDED) return "computed when the model is imported, or not needed";
  if (entry.place === CPU) return entry.reason.layer === "policy" ? "kept off the engine by the policy" : "rejected";
  return entry.rewritten ? "accepted, as other units" : "accepted";
}

function targetPart(target, node) {
  const entry = entryOf(target, node);
  const head = el("h4", {}, titleOf(target).replace(/ \(.*/, ""), " ", badge(entry ? entry.place : FOLDED));
  if (!entry) return el("section", {}, head);
  const reason = entry.reason;
  const words = reason && reason.message && reason.message !== reason.condition ? el("q", {}, printable(reason.message)) : null;
  const warnings = TARGETS[target].warnings.filter(warning => warning.places.includes(node));
  return el("section", {}, head, facts([
    ["verdict", verdictText(entry)],
    ["with", entry.shown !== node ? nodeLink(entry.shown) : null],
    ["segment", entry.segment < 0 ? null : segmentLink(target, entry.segment)],
    ["units", entry.units],
    ["layer", reason && reason.layer],
    ["why", reason && reason.condition ? printable(reason.condition) : null],
    ["words", words],
    ["remedy", reason && reason.remedy ? el("strong", {}, printable(reason.remedy)) : null],
    ["rule", reason && reason.rule ? el("code", {}, printable(reason.rule)) : null],
    ["source", reason && reason.source ? printable(reason.source) : null],
    ["cost", costText(entry)],
    ["MACs", entry.macs === null ? "? (a size is not known)" : entry.macs ? short(entry.macs) : null],
    ["off by", entry.bound ? `at most ${printable(entry.bound)}` : null],
    ["facts are", entry.place === FOLDED ? null : statusText(entry.status)],
    ["warning", warnings.length ? warnings.map(w => el("p", {}, cut(w.message, 300), w.remedy ? el("em", {}, " ", cut(w.remedy, 200)) : null)) : null],
  ]));
}

function nodeLink(node) {
  return el("button.link", {type: "button", onclick: () => chooseNode(node, true)},
            nameText(nameOf(node), 40), el("small", {}, " ", cut(opOf(node), 24)));
}

function segmentLink(target, segment) {
  const {place, nodes, us, limit} = TARGETS[target].segments[segment];
  return [el("button.link", {type: "button", onclick: () => showSegment(target, segment)}, `${segment} (${PLACE_WORDS[place]})`),
          ` ${counted(nodes, "node")}` + (us === null ? "" : `, about ${timeText(us)}, limited by ${limit}`)];
}

function showSegment(target, segment) {
  const nodes = [];
  for (let node = 0; node < COUNT; ++node) if (segmentOf(target, node) === segment) nodes.push(node);
  if (target !== state.target) chooseTarget(target);
  mark(new Set(nodes));
  if (nodes.length) goTo(nodes[0]);
}

function neighbours(title, nodes) {
  if (!nodes.length) return null;
  const list = el("ul", {}, nodes.slice(0, SHOWN_NEIGHBOURS).map(node => el("li", {}, nodeLink(node))));
  if (nodes.length > SHOWN_NEIGHBOURS) list.append(el("li", {}, `and ${nodes.length - SHOWN_NEIGHBOURS} more`));
  return [el("h4", {}, title), list];
}

function showNode(node) {
  const box = byId("node");
  if (node < 0) {
    box.replaceChildren(el("p.empty", {}, "Click a node, or choose one with the arrow keys and Enter, to see its verdict on ",
      TARGETS.length > 1 ? "each target" : "the target", ", the rule and its source, what it costs, and what to change."));
    return;
  }
  const joined = (NODES.joined[node] ?? []).map(([id, name, op]) => `${cut(textOf(op), 24)} ${cutAtStart(name || id, 40)}`);
  const order = [state.target, ...TARGETS.keys()].filter((target, i, all) => all.indexOf(target) === i);
  const parts = order.slice(0, 6).map(target => targetPart(target, node));
  if (order.length > 6) {
    parts.push(el("details", {}, el("summary", {}, `${order.length - 6} more targets`),
                  order.slice(6).map(target => targetPart(target, node))));
  }
  box.replaceChildren(
    el("button.close", {type: "button", "aria-label": "close", onclick: () => { chooseNode(-1); byId("graph").focus(); }}, "\u00d7"),
    el("h3", {}, cut(opOf(node), 60)),
    el("p.id", {}, nameText(nameOf(node), 160)),
    facts([
      ["id", el("code", {}, nameText(NODES.id[node], 80))],
      ["output", textOf(NODES.output[node])],
      ["constants", NODES.weight_bytes[node] ? bytesText(NODES.weight_bytes[node]) : null],
      ["writes", NODES.output_bytes[node] ? bytesText(NODES.output_bytes[node]) : null],
      ["joined with", joined.length ? joined.slice(0, 12).join(", ") + (joined.length > 12 ? ` and ${joined.length - 12} more` : "") : null],
    ]),
    ...parts,
    ...[neighbours("reads from", BEFORE[node]), neighbours("read by", AFTER[node])].flat().filter(part => part));
  box.scrollTop = 0;
}

watch("node", showNode);
watch("target", () => showNode(state.node));
