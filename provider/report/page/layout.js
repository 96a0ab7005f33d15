// Where the nodes of one block are, by the library's layered layout.

const NODE_HEIGHT = 40, LEAST_WIDTH = 76, MOST_WIDTH = 230, GAP = 20, RANK_GAP = 28;
const LONGEST_LABEL = 26;
const BLOCK_GAP = 44, TITLE_HEIGHT = 30, BLOCK_PADDING = 16, CLOSED_WIDTH = 320, CLOSED_HEIGHT = 56;

// The two lines on a node: operator, and the end of its name.
const labels = new Map();
function labelOf(node) {
  if (!labels.has(node)) {
    const parts = NODES.name[node].split("/").filter(part => part !== ""), op = opOf(node).replace(/ \(.*/, "");
    // "attn/Relu": the operator alone would be said twice.
    const name = parts.slice(parts.at(-1) === op ? -2 : -1).join("/") || NODES.id[node];
    labels.set(node, [cut(op, LONGEST_LABEL), cutAtStart(name, LONGEST_LABEL)]);
  }
  return labels.get(node);
}

const ruler = document.createElement("canvas").getContext("2d");
function widthOf(node) {
  const family = getComputedStyle(document.body).fontFamily, lines = labelOf(node);
  const widths = [`650 12px ${family}`, `11px ${family}`].map((font, i) => {
    ruler.font = font;
    return ruler.measureText(lines[i]).width;
  });
  return Math.round(Math.min(MOST_WIDTH, Math.max(LEAST_WIDTH, ...widths.map(width => width + 24))));
}

// Folded nodes have no edges: a grid.
function layoutGrid(block) {
  const boxes = new Map(), columns = Math.max(1, Math.min(6, Math.ceil(Math.sqrt(block.nodes.length / 2))));
  const width = MOST_WIDTH + GAP;
  block.nodes.forEach((node, i) => boxes.set(node, {
    x: (i % columns - (columns - 1) / 2) * width, y: Math.floor(i / columns) * (NODE_HEIGHT + 10) + NODE_HEIGHT / 2,
    w: MOST_WIDTH, h: NODE_HEIGHT}));
  const rows = Math.ceil(block.nodes.length / columns);
  return {boxes, lines: [], enters: new Map(), leaves: new Map(), width: columns * width, height: rows * (NODE_HEIGHT + 10)};
}

// The library's layered layout: gives items x and y, and edges points.
function layered(nodes, edges) {
  for (const edge of edges) Object.assign(edge, {minlen: 1, width: 0, height: 0, labeloffset: 10, labelpos: "r"});
  dagre.layout(nodes, edges, {nodesep: GAP, ranksep: RANK_GAP, edgesep: 8, ranker: "network-simplex"}, {});
  return {nodes, edges};
}

// The nodes, a port above for each value that enters, and one below for each that leaves. All ports
// hang on one node at the top or at the bottom, which is not drawn.
function layoutGraph(block) {
  const inside = new Set(block.nodes), items = [], edges = [];
  for (const node of block.nodes) items.push({v: String(node), width: widthOf(node), height: NODE_HEIGHT});
  const join = (v, w, weight = 1) => edges.push({v, w, weight});
  const port = v => items.push({v, width: 10, height: 2});
  if (block.enters.length) port("top");
  if (block.leaves.length) port("bottom");
  for (const value of block.enters) {
    port(`in${value}`);
    join("top", `in${value}`, 8);
    for (const reader of AFTER[value]) if (inside.has(reader)) join(`in${value}`, String(reader));
  }
  for (const value of block.leaves) {
    port(`out${value}`);
    join(inside.has(value) ? String(value) : `in${value}`, `out${value}`);
    join(`out${value}`, "bottom", 8);
  }
  for (const node of block.nodes) {
    for (const reader of AFTER[node]) if (inside.has(reader)) join(String(node), String(reader));
  }
  const made = layered(items, edges);
  const boxes = new Map(), enters = new Map(), leaves = new Map(), lines = [];
  let left = Infinity, right = -Infinity, bottom = 0;
  for (const {v, x, y, width} of made.nodes) {
    if (v === "top" || v === "bottom") continue;
    if (v.startsWith("in")) enters.set(Number(v.slice(2)), x);
    else if (v.startsWith("out")) leaves.set(Number(v.slice(3)), x);
    else {
      boxes.set(Number(v), {x, y, w: width, h: NODE_HEIGHT});
      left = Math.min(left, x - width / 2);
      right = Math.max(right, x + width / 2);
      bottom = Math.max(bottom, y + NODE_HEIGHT / 2);
    }
  }
  for (const {v, w, points} of made.edges) {
    if (v === "top" || w === "bottom") continue;
    for (const {x} of points) [left, right] = [Math.min(left, x), Math.max(right, x)];
    lines.push({points, from: Number(v.replace(/\D/g, "")), to: w.startsWith("out") ? -1 : Number(w),
                enters: v.startsWith("in"), leaves: w.startsWith("out")});
  }
  const middle = (left + right) / 2, top = Math.min(...[...boxes.values()].map(box => box.y - box.h / 2));
  for (const box of boxes.values()) [box.x, box.y] = [box.x - middle, box.y - top];
  for (const line of lines) {
    line.points = line.points.map(({x, y}) => ({x: x - middle, y: y - top}));
    // Lines to ports go straight to the edge of the block.
    if (line.enters) line.points[0] = {x: line.points[0].x, y: -BLOCK_PADDING};
    if (line.leaves) line.points[line.points.length - 1] = {x: line.points.at(-1).x, y: bottom - top + BLOCK_PADDING};
  }
  for (const map of [enters, leaves]) for (const [value, x] of map) map.set(value, x - middle);
  return {boxes, lines, enters, leaves, width: right - left, height: bottom - top};
}

// How tall a block will be, before it is laid out: its longest path.
function guessHeight(block) {
  if (block.kind === "folded") return layoutGrid(block).height;
  const depth = new Map();
  let deepest = 0;
  for (const node of block.nodes) {
    let at = 1;
    for (const before of BEFORE[node]) at = Math.max(at, 1 + (depth.get(before) ?? 0));
    depth.set(node, at);
    deepest = Math.max(deepest, at);
  }
  return deepest * (NODE_HEIGHT + RANK_GAP);
}

const GRAPH_BLOCKS = BLOCKS.filter(block => block.kind === "graph").length;
const hasFrame = block => GRAPH_BLOCKS > 1 || block.kind === "folded" || !block.isOpen;

// Sizes an open block; `now`: lay it out, else guess.
function sizeBlock(block, now) {
  if (!block.isOpen) {
    [block.width, block.height] = [CLOSED_WIDTH, CLOSED_HEIGHT];
    return;
  }
  if (now && block.layout === null) {
    block.layout = block.kind === "folded" ? layoutGrid(block) : layoutGraph(block);
  }
  const frame = hasFrame(block) ? 2 * BLOCK_PADDING + TITLE_HEIGHT : 2 * BLOCK_PADDING;
  block.width = (block.layout ? block.layout.width : CLOSED_WIDTH) + 2 * BLOCK_PADDING;
  if (hasFrame(block)) block.width = Math.max(block.width, CLOSED_WIDTH);
  block.height = (block.layout ? block.layout.height : block.guess ??= guessHeight(block)) + frame;
}

// Puts the blocks below each other. Returns the height of all.
const all = {width: 0, height: 0};
function stack() {
  let y = 0;
  all.width = 0;
  for (const block of BLOCKS) {
    block.y = y;
    y += block.height + BLOCK_GAP;
    all.width = Math.max(all.width, block.width);
  }
  return all.height = y - BLOCK_GAP;
}

// Where the layout of an open block begins.
const originOf = block => block.y + BLOCK_PADDING + (hasFrame(block) ? TITLE_HEIGHT : 0);
