// The data of the page (provider/report/report_data.cc), and questions about it. Nodes and entries are
// numbers: places in the lists of DATA.

const DATA = JSON.parse(byId("plan").textContent);
const NODES = DATA.nodes;
const COUNT = NODES.id.length;
const TARGETS = DATA.targets;
const ENGINE = 0, CPU = 1, FOLDED = 2;
const PLACES = ["engine", "cpu", "folded"];
const PLACE_WORDS = ["engine", "CPU", "folded"];

const textOf = number => DATA.texts[number];
const opOf = node => textOf(NODES.op[node]);
const nameOf = node => NODES.name[node] || NODES.id[node];
const isFolded = node => NODES.part[node] < 0;

const titleOf = target => TARGETS[target].label + (TARGETS[target].size ? ` at ${TARGETS[target].size}` : "");

// The entry of a node on a target, as an object; null if it has none.
function entryOf(target, node) {
  const entries = TARGETS[target].entries;
  const at = entries.of[node];
  if (at < 0) return null;
  return {
    number: at, shown: entries.shown[at], place: entries.place[at], segment: entries.segment[at],
    rewritten: entries.rewritten[at] === 1, units: textOf(entries.units[at]), macs: entries.macs[at],
    us: entries.us[at], limit: entries.limit[at], cpuUs: entries.cpu_us[at], bound: textOf(entries.bound[at]),
    status: textOf(entries.status[at]),
    reason: entries.reason[at] < 0 ? null : TARGETS[target].reasons[entries.reason[at]],
  };
}

function placeOf(target, node) {
  const entries = TARGETS[target].entries, at = entries.of[node];
  return at < 0 ? FOLDED : entries.place[at];
}

function segmentOf(target, node) {
  const entries = TARGETS[target].entries, at = entries.of[node];
  return at < 0 ? -1 : entries.segment[at];
}

// The nodes that each node reads from, and those that read it.
const [BEFORE, AFTER] = (() => {
  const before = Array.from({length: COUNT}, () => []), after = Array.from({length: COUNT}, () => []);
  for (let i = 0; i < NODES.edges.length; i += 2) {
    after[NODES.edges[i]].push(NODES.edges[i + 1]);
    before[NODES.edges[i + 1]].push(NODES.edges[i]);
  }
  return [before, after];
})();

// The folders of a node's name: "/layers.0/attn/MatMul" is in ["layers.0", "attn"].
function pathOf(node) {
  const parts = NODES.name[node].split(/[\/]/).filter(part => part !== "");
  parts.pop();
  return parts;
}

// Hues of segments: engine segments are green to violet, CPU segments are orange, so that a glance tells
// the two apart.
const ENGINE_HUES = [172, 214, 146, 262, 194, 236], CPU_HUES = [28, 12, 42];
function hueOf(target, segment) {
  const place = segment < 0 ? FOLDED : TARGETS[target].segments[segment].place;
  if (place === FOLDED) return null;
  const hues = place === ENGINE ? ENGINE_HUES : CPU_HUES;
  return hues[rankOf(target, segment) % hues.length];
}

// The number of a segment among those of the same placement.
const ranks = new Map();
function rankOf(target, segment) {
  if (!ranks.has(target)) {
    const next = [0, 0];
    ranks.set(target, TARGETS[target].segments.map(s => next[s.place]++));
  }
  return ranks.get(target)[segment];
}
