// Draws the part of the graph that is in view. Elements exist only for nodes near the window, each with
// the attribute data-node. The view is a shift in pixels and a scale.

const SVG = byId("drawing").namespaceURI;
const LEAST_SCALE = 0.02, MOST_SCALE = 2.5, TEXT_SCALE = 0.34, MOST_DRAWN = 1400;
const view = {x: 0, y: 0, scale: 1};
let drawn = null;      // the rectangle of the world that is drawn, with its scale
let cursor = -1;       // the node that the arrow keys move from

const graphBox = byId("graph"), layer = byId("layer"), drawing = byId("drawing");

function svg(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const groups = {frames: svg("g", {}), lines: svg("g", {class: "lines"}), nodes: svg("g", {})};
const world = svg("g", {}, groups.frames, groups.lines, groups.nodes);
drawing.append(world);
const elements = new Map();   // node -> its element
const frames = new Map();     // block -> its elements
const wires = new Map();      // block -> its lines

function classOf(node) {
  const place = placeOf(state.target, node);
  const marked = state.marked === null ? "" : state.marked.has(node) ? " marked" : " dim";
  return `node ${PLACES[place]}${marked}${node === state.node ? " chosen" : ""}`;
}

function paint(node, element) {
  element.setAttribute("class", classOf(node));
  const hue = hueOf(state.target, segmentOf(state.target, node));
  if (hue === null) element.style.removeProperty("--hue");
  else element.style.setProperty("--hue", hue);
  element.setAttribute("aria-label", `${labelOf(node)[0]} ${labelOf(node)[1]}, ${PLACE_WORDS[placeOf(state.target, node)]}`);
}

function makeNode(node, box, block) {
  const [op, name] = labelOf(node);
  const left = box.x - box.w / 2, top = originOf(block) + box.y - box.h / 2;
  const element = svg("g", {"data-node": NODES.id[node], tabindex: "-1", role: "button", transform: `translate(${left},${top})`},
    svg("rect", {width: box.w, height: box.h, rx: 6}),
    svg("rect", {class: "edge", width: 5, height: box.h, rx: 2}));
  const first = svg("text", {x: 13, y: 17, class: "op"}), second = svg("text", {x: 13, y: 31, class: "name"});
  first.textContent = op;
  second.textContent = name;
  element.append(first, second);
  element.node = node;
  paint(node, element);
  return element;
}

// How many nodes of a block are on the engine, and how many on the CPU.
function sharesOf(block) {
  const counts = [0, 0, 0];
  for (const node of block.nodes) ++counts[placeOf(state.target, node)];
  return counts;
}

function makeFrame(block, far) {
  const parts = [], left = -block.width / 2;
  if (hasFrame(block)) {
    parts.push(svg("rect", {class: "frame", x: left, y: block.y, width: block.width, height: block.height, rx: 10}));
  }
  if (!block.isOpen || far) {
    let x = left + 10;
    const counts = sharesOf(block), width = block.width - 20;
    counts.forEach((count, place) => {
      if (!count) return;
      const part = width * count / block.nodes.length;
      parts.push(svg("rect", {class: `share ${PLACES[place]}`, x, y: block.y + (far && block.isOpen ? TITLE_HEIGHT : 34), width: part,
                              height: far && block.isOpen ? Math.max(8, block.height - TITLE_HEIGHT - 12) : 10}));
      x += part;
    });
  }
  if (hasFrame(block)) {
    const title = svg("text", {x: left + 14, y: block.y + 22, class: "title"});
    title.textContent = `${block.isOpen ? "\u25be" : "\u25b8"} ${cutAtStart(blockTitle(block), block.isOpen ? 60 : 28)}`
      + (block.kind === "graph" ? ` \u00b7 ${block.nodes.length.toLocaleString("en")}` : "");
    parts.push(title);
    const press = svg("rect", {class: "press", x: left, y: block.y, width: block.width, height: block.isOpen ? TITLE_HEIGHT : block.height, rx: 10,
      tabindex: "0", role: "button", "aria-expanded": String(block.isOpen), "aria-label": `block ${cut(blockTitle(block), 60)}`});
    press.block = block;
    parts.push(press);
  }
  const element = svg("g", {}, ...parts);
  return element;
}

function linesOf(block, next) {
  const element = svg("g", {});
  if (block.isOpen && block.layout) {
    const origin = originOf(block);
    const moved = svg("g", {transform: `translate(0,${origin})`});
    for (const line of block.layout.lines) {
      const on = state.node >= 0 && (line.from === state.node || line.to === state.node);
      moved.append(svg("path", {d: curve(line.points), class: on ? "on" : line.to < 0 || line.leaves ? "" : "arrow"}));
    }
    element.append(moved);
  }
  const between = bridges(block, next);
  if (between) element.append(svg("path", {d: between}));
  return element;
}

// The visible rectangle of the world, with a margin of a part of the window.
function rectangle(margin) {
  const {clientWidth: w, clientHeight: h} = graphBox;
  return {left: (-view.x - margin * w) / view.scale, right: (-view.x + (1 + margin) * w) / view.scale,
          top: (-view.y - margin * h) / view.scale, bottom: (-view.y + (1 + margin) * h) / view.scale};
}

const NEAR = 0.05;  // blocks in this margin are laid out at once, others when there is time
const isWaiting = block => block.isOpen && block.layout === null;
const isSeen = (block, rect) => block.y + block.height + BLOCK_GAP >= rect.top && block.y <= rect.bottom;

// Lays out the blocks in view. The view stays at the middle block if heights change.
function settle(rect) {
  for (let round = 0; round < 4; ++round) {
    const waiting = BLOCKS.filter(block => isWaiting(block) && isSeen(block, rect));
    if (!waiting.length) return;
    if (waiting.reduce((sum, block) => sum + block.nodes.length, 0) > 2 * MOST_DRAWN) return;
    const before = new Map(waiting.map(block => [block, block.height]));
    for (const block of waiting) sizeBlock(block, true);
    for (const [block, height] of before) {
      if (block.y + height < rectangle(0).top) view.y -= (block.height - height) * view.scale;
    }
    stack();
    clear(elements, frames, wires);  // the blocks below have moved
    rect = rectangle(NEAR);
  }
}

function clear(...maps) {
  for (const map of maps) {
    map.forEach(element => element.remove());
    map.clear();
  }
}

// Makes the elements of a map those of `wanted`.
function keep(map, wanted, make, parent) {
  for (const [key, element] of map) {
    if (wanted.has(key)) continue;
    element.remove();
    map.delete(key);
  }
  const fresh = [];
  for (const key of wanted.keys()) {
    if (map.has(key)) continue;
    const element = make(key);
    map.set(key, element);
    fresh.push(element);
  }
  parent.append(...fresh);
}

let drawnFar = false;
function redraw() {
  settle(rectangle(NEAR));
  const rect = rectangle(0.5);
  const seen = BLOCKS.filter(block => isSeen(block, rect)), waiting = seen.filter(isWaiting);
  const wanted = new Map();
  let far = waiting.some(block => isSeen(block, rectangle(NEAR)));
  for (const block of far ? [] : seen) {
    if (!block.isOpen || isWaiting(block)) continue;
    const origin = originOf(block);
    for (const [node, box] of block.layout.boxes) {
      const y = origin + box.y;
      if (y < rect.top - 40 || y > rect.bottom + 40 || box.x + box.w / 2 < rect.left || box.x - box.w / 2 > rect.right) continue;
      wanted.set(node, block);
    }
  }
  if (wanted.size > MOST_DRAWN) far = true;
  if (far) wanted.clear();
  for (const node of [cursor, state.node]) {
    const block = node < 0 ? null : BLOCKS[BLOCK_OF[node]];
    if (block && block.isOpen && block.layout && !far) wanted.set(node, block);
  }
  if (far !== drawnFar) clear(frames);
  drawnFar = far;
  keep(elements, wanted, node => makeNode(node, wanted.get(node).layout.boxes.get(node), wanted.get(node)), groups.nodes);
  keep(frames, new Map(seen.map(block => [block, block])), block => makeFrame(block, far), groups.frames);
  keep(wires, new Map((far ? [] : seen).map(block => [block, block])),
       block => linesOf(block, BLOCKS[BLOCKS.indexOf(block) + 1]), groups.lines);
  drawing.classList.toggle("small", view.scale < TEXT_SCALE);
  const s = view.scale;
  drawing.style.left = `${rect.left * s}px`;
  drawing.style.top = `${rect.top * s}px`;
  drawing.setAttribute("width", (rect.right - rect.left) * s);
  drawing.setAttribute("height", (rect.bottom - rect.top) * s);
  world.setAttribute("transform", `translate(${-rect.left * s},${-rect.top * s}) scale(${s})`);
  drawn = {...rect, scale: s, waiting: far ? [] : waiting};
  const toggle = byId("fold");
  toggle.hidden = GRAPH_BLOCKS < 2;
  toggle.textContent = BLOCKS.some(block => block.kind === "graph" && block.isOpen) ? "close blocks" : "open blocks";
}

// Keeps the graph in the window: all of it if it fits, else a part of it.
function holdView() {
  const {clientWidth: w, clientHeight: h} = graphBox, width = all.width * view.scale, height = all.height * view.scale;
  const within = (value, low, high) => Math.min(Math.max(value, low), high);
  view.x = within(view.x, 0.1 * w - width / 2, 0.9 * w + width / 2);
  view.y = height + 24 <= h ? within(view.y, 12, h - height - 12) : within(view.y, 0.7 * h - height, 0.3 * h);
}

// Shows the view: moves what is drawn, and draws again if the window leaves it.
function showView() {
  holdView();
  const rect = rectangle(0);
  const inside = drawn && drawn.scale === view.scale && rect.left >= drawn.left && rect.right <= drawn.right &&
    rect.top >= drawn.top && rect.bottom <= drawn.bottom && !drawn.waiting.some(block => isSeen(block, rect));
  if (!inside) redraw();
  layer.style.transform = `translate(${view.x}px,${view.y}px)`;
  showInStrip();
}

// Draws everything again, because sizes of blocks or colours have changed.
function refresh() {
  clear(elements, frames, wires);
  drawn = null;
  showView();
}

function repaint() {
  elements.forEach((element, node) => paint(node, element));
}

function openBlock(block, isOpen) {
  const top = block.y;
  block.isOpen = isOpen;
  sizeBlock(block, isOpen);
  stack();
  view.y -= (block.y - top) * view.scale;
  refresh();
}

// Closes all blocks of the graph, or opens them if all are closed.
function toggleAll() {
  const blocks = BLOCKS.filter(block => block.kind === "graph"), isOpen = !blocks.some(block => block.isOpen);
  for (const block of blocks) {
    block.isOpen = isOpen;
    sizeBlock(block, false);
  }
  fit();
}

// The middle of a node in the world; opens its block.
function middleOf(node) {
  const block = BLOCKS[BLOCK_OF[node]];
  if (!block.isOpen) openBlock(block, true);
  if (block.layout === null) {
    sizeBlock(block, true);
    stack();
    refresh();
  }
  const box = block.layout.boxes.get(node);
  return {x: box.x, y: originOf(block) + box.y};
}

// Brings a node to the middle of the window, if it is not well inside it.
function goTo(node, always = true) {
  if (view.scale < 0.6) {
    view.scale = 0.85;
    drawn = null;
  }
  const {clientWidth: w, clientHeight: h} = graphBox, {x, y} = middleOf(node);
  const at = {x: view.x + x * view.scale, y: view.y + y * view.scale};
  if (!always && at.x > 60 && at.x < w - 60 && at.y > 40 && at.y < h - 40) return;
  view.x = w / 2 - x * view.scale;
  view.y = h * 0.4 - y * view.scale;
  showView();
}

// The whole width and the top; if everything fits at a readable scale, all of it.
function fit() {
  const {clientWidth: w, clientHeight: h} = graphBox;
  stack();
  const first = BLOCKS.filter(block => block.y < 2 * h);
  for (const block of first.slice(0, 4)) sizeBlock(block, true);
  const height = stack();
  const width = Math.max(...first.map(block => block.width)) + 24;
  const whole = Math.min(w / width, h / (height + 24));
  view.scale = Math.min(1, whole >= 0.5 ? whole : Math.max(0.6, w / width));
  view.x = w / 2;
  view.y = 12;
  const top = first[0]?.isOpen ? first[0].layout?.boxes.get(first[0].nodes[0]) : null;
  if (top && width * view.scale > w) view.x -= top.x * view.scale;
  refresh();
}

function zoom(factor, x = graphBox.clientWidth / 2, y = graphBox.clientHeight / 2) {
  const whole = 0.94 * graphBox.clientHeight / all.height;
  const scale = Math.min(MOST_SCALE, Math.max(LEAST_SCALE, Math.min(whole, 0.5), view.scale * factor));
  view.x = x - (x - view.x) * scale / view.scale;
  view.y = y - (y - view.y) * scale / view.scale;
  view.scale = scale;
  showView();
}

function showLegend() {
  const {segments} = TARGETS[state.target];
  const items = segments.slice(0, 12).map((segment, i) => {
    const swatch = el(`span.swatch.${PLACES[segment.place]}`, {});
    swatch.style.setProperty("--hue", hueOf(state.target, i));
    return el("button.link", {type: "button", title: "show its nodes", onclick: () => showSegment(state.target, i)}, swatch,
              `${segment.place === ENGINE ? "engine" : "CPU"} ${i}`, el("small", {}, ` ${segment.nodes}`));
  });
  if (segments.length > 12) items.push(el("span", {}, `and ${segments.length - 12} more segments`));
  if (TARGETS[state.target].summary.folded_nodes) items.push(el("span", {}, el("span.swatch.folded", {}), "folded"));
  byId("legend").replaceChildren(el("span", {}, "segments, with their nodes: "), ...items);
}

watch("target", () => { repaint(); clear(frames); drawn = null; showView(); showLegend(); });
watch("marked", repaint);
watch("node", (node, jump) => {
  if (node >= 0) cursor = node;
  if (node >= 0 && jump) goTo(node);
  clear(wires);
  drawn = null;
  showView();
  repaint();
});
