// A treemap of where time and bytes go: by the folders of the nodes' names, then by operator. A press on a
// part shows what is in it; a press on a node chooses it.

const MEASURES = [
  {name: "time", unit: timeText, note: "estimated time: of engine nodes on the engine, of the others on the CPU",
   of: (entries, at) => (entries.place[at] === ENGINE ? entries.us[at] : entries.cpu_us[at]) ?? 0},
  {name: "MACs", unit: short, note: "multiply-accumulates", of: (entries, at) => entries.macs[at] ?? 0},
  {name: "constants", unit: bytesText, note: "bytes of constants that the nodes read", node: node => NODES.weight_bytes[node]},
  {name: "values", unit: bytesText, note: "bytes that the nodes write", node: node => NODES.output_bytes[node]},
];
const MOST_PARTS = 40;
const map = {measure: 0, path: []};

// What a node counts: an entry's time and MACs are those of the node that names it.
function weightOf(node, measure) {
  const {entries} = TARGETS[state.target], at = entries.of[node];
  if (isFolded(node)) return 0;
  if (measure.node) return measure.node(node);
  return at >= 0 && entries.shown[at] === node ? measure.of(entries, at) : 0;
}

// The operators of each entry of a target that has several nodes: "MatMul + Add".
const jointOps = new Map();
function jointOpsOf(target) {
  if (jointOps.has(target)) return jointOps.get(target);
  const {of} = TARGETS[target].entries, ops = new Map();
  for (let node = 0; node < COUNT; ++node) {
    if (of[node] < 0 || isFolded(node)) continue;
    if (!ops.has(of[node])) ops.set(of[node], new Set());
    ops.get(of[node]).add(opOf(node));
  }
  jointOps.set(target, ops);
  return ops;
}

// The keys of a node, outermost first. An entry's time is that of all its nodes, so they name it.
function keysOf(node, measure) {
  const op = measure.node ? opOf(node) : [...jointOpsOf(state.target).get(TARGETS[state.target].entries.of[node])].join(" + ");
  return [...pathOf(node), op];
}

function partsAt(path, measure) {
  const parts = new Map();
  for (let node = 0; node < COUNT; ++node) {
    const weight = weightOf(node, measure);
    if (weight <= 0) continue;
    const keys = keysOf(node, measure);
    if (!path.every((key, i) => keys[i] === key)) continue;
    const key = keys[path.length] ?? `node ${node}`;
    if (!parts.has(key)) parts.set(key, {key, weight: 0, places: [0, 0, 0], nodes: [], isNode: path.length >= keys.length});
    const part = parts.get(key);
    part.weight += weight;
    part.places[placeOf(state.target, node)] += weight;
    part.nodes.push(node);
  }
  return [...parts.values()].sort((a, b) => b.weight - a.weight);
}

// Rectangles of the areas `weights` in a box, in rows that are as square as possible.
function squarify(weights, box) {
  const made = [];
  let {x, y, w, h} = box, start = 0, left = weights.reduce((sum, weight) => sum + weight, 0);
  while (start < weights.length) {
    const side = Math.min(w, h), scale = w * h / left;
    let end = start, sum = 0, worst = Infinity;
    while (end < weights.length) {
      const next = sum + weights[end] * scale, low = weights[end] * scale, high = weights[start] * scale;
      const ratio = Math.max(side * side * high / (next * next), next * next / (side * side * low));
      if (ratio > worst) break;
      [worst, sum] = [ratio, next];
      ++end;
    }
    const thick = sum / side;
    let along = 0;
    for (let i = start; i < end; ++i) {
      const length = weights[i] * scale / thick;
      made.push(w >= h ? {x, y: y + along, w: thick, h: length} : {x: x + along, y, w: length, h: thick});
      along += length;
      left -= weights[i];
    }
    if (w >= h) [x, w] = [x + thick, w - thick];
    else [y, h] = [y + thick, h - thick];
    start = end;
  }
  return made;
}

function cellOf(part, box, all, measure) {
  const engine = part.places[ENGINE] / part.weight;
  const label = part.isNode ? nameText(nameOf(part.nodes[0]), 40) : nameText(part.key, 40);
  const share = `${measure.unit(part.weight)}, ${percent(part.weight / all)}`;
  const cell = el("button", {
    type: "button", title: `${cut(part.isNode ? nameOf(part.nodes[0]) : part.key, 120)}: ${share}; ${percent(engine)} of it on the engine`,
    onclick: () => {
      if (part.nodes.length === 1) {
        chooseNode(part.nodes[0], true);
        byId("tools").scrollIntoView({block: "start"});
      } else if (part.rest === undefined) {
        map.path.push(part.key);
        showMap();
        byId("treemap").querySelector("button")?.focus({preventScroll: true});
      }
    }}, el("span", {}, label), el("small", {}, share));
  cell.className = part.rest !== undefined ? "rest" : engine >= 0.999 ? "engine" : engine <= 0.001 ? "cpu" : "both";
  if (cell.className === "both") cell.style.setProperty("--share", `${100 * engine}%`);
  for (const [key, value] of Object.entries({left: box.x, top: box.y, width: box.w, height: box.h})) cell.style[key] = `${value}%`;
  return cell;
}

function showMap() {
  const measure = MEASURES[map.measure], box = byId("treemap");
  let parts = partsAt(map.path, measure);
  // A folder that holds only one folder says nothing.
  while (parts.length === 1 && parts[0].nodes.length > 1) {
    map.path.push(parts[0].key);
    parts = partsAt(map.path, measure);
  }
  const all = parts.reduce((sum, part) => sum + part.weight, 0);
  if (parts.length > MOST_PARTS) {
    const rest = parts.slice(MOST_PARTS - 1), places = [0, 0, 0];
    for (const part of rest) part.places.forEach((weight, i) => { places[i] += weight; });
    parts = [...parts.slice(0, MOST_PARTS - 1), {key: `${rest.length} smaller parts`, weight: places.reduce((a, b) => a + b), places, nodes: rest.flatMap(part => part.nodes), rest}];
    parts.sort((a, b) => b.weight - a.weight);
  }
  const ratio = Math.max(0.2, box.clientHeight / Math.max(1, box.clientWidth));
  const cells = squarify(parts.map(part => part.weight), {x: 0, y: 0, w: 100, h: 100 * ratio});
  box.classList.toggle("empty", !parts.length);
  box.replaceChildren(...(parts.length
    ? parts.map((part, i) => cellOf(part, {...cells[i], y: cells[i].y / ratio, h: cells[i].h / ratio}, all, measure))
    : [el("p", {}, map.measure === 0 ? "No times are known: the target's rates are not published, or sizes are free." : `No node has ${measure.name}.`)]));
  const crumb = (text, depth) => el("button.link", {type: "button", onclick: () => { map.path.length = depth; showMap(); }}, text);
  byId("crumbs").replaceChildren(crumb("model", 0), ...map.path.flatMap((key, i) => [" \u203a ", crumb(cut(key, 30), i + 1)]), ` \u2013 ${measure.unit(all)}`);
  byId("treemap-note").textContent = `${measure.note[0].toUpperCase()}${measure.note.slice(1)}. Green runs on the engine, orange on the CPU.`;
  for (const [i, button] of [...byId("measures").children].entries()) button.setAttribute("aria-checked", String(i === map.measure));
}

function showMeasures() {
  byId("measures").replaceChildren(...MEASURES.map((measure, i) => el("button", {type: "button", role: "radio", onclick: () => {
    map.measure = i;
    map.path.length = 0;
    showMap();
  }}, measure.name)));
}

watch("target", () => {
  map.path.length = 0;
  if (map.measure === 0 && TARGETS[state.target].rates === null) map.measure = 1;
  showMap();
});
