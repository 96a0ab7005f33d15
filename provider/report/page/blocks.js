// Cuts the graph into blocks that are laid out one by one and drawn below each other. A block is a run of
// nodes in the order of the model. It ends where few values cross, best between two modules.

const ONE_BLOCK = 260;         // so many nodes are not cut
const MOST_IN_BLOCK = 120, LEAST_IN_BLOCK = 40;
const MOST_OPEN = 20000;       // with more nodes than this, all blocks are closed at first
const MOST_CROSSING = 12;      // values that are drawn from one block to the next

// How many folders the names of two nodes share.
function sharedDepth(a, b) {
  let depth = 0;
  while (depth < a.length && depth < b.length && a[depth] === b[depth]) ++depth;
  return depth;
}

// Where to cut `nodes`: lists of nodes.
function cutIntoRuns(nodes) {
  if (nodes.length <= ONE_BLOCK) return [nodes];
  const most = COUNT > MOST_OPEN ? 3 * MOST_IN_BLOCK : MOST_IN_BLOCK;
  const least = COUNT > MOST_OPEN ? 3 * LEAST_IN_BLOCK : LEAST_IN_BLOCK;
  const at = new Map(nodes.map((node, i) => [node, i]));
  const change = new Int32Array(nodes.length + 2);
  for (const [node, i] of at) {
    let last = i;
    for (const reader of AFTER[node]) last = Math.max(last, at.get(reader) ?? i);
    ++change[i + 1];
    --change[last + 1];
  }
  const crossing = new Int32Array(nodes.length + 1);
  for (let i = 1; i <= nodes.length; ++i) crossing[i] = crossing[i - 1] + change[i];
  const paths = nodes.map(pathOf);
  const runs = [];
  for (let start = 0; start < nodes.length;) {
    if (nodes.length - start <= most) {
      runs.push(nodes.slice(start));
      break;
    }
    let best = start + most, lowest = Infinity;
    for (let i = start + least; i <= start + most; ++i) {
      const cost = 3 * crossing[i] + 2 * sharedDepth(paths[i - 1], paths[i]) - 2 * (i - start) / most;
      if (cost < lowest) [best, lowest] = [i, cost];
    }
    runs.push(nodes.slice(start, best));
    start = best;
  }
  return runs;
}

// What the names of most nodes in a block have in common: "layers.3/attn"; else the operators.
function titleOfBlock(nodes) {
  const counts = new Map();
  for (const node of nodes) {
    const path = pathOf(node);
    for (let depth = 1; depth <= Math.min(path.length, 6); ++depth) {
      const key = path.slice(0, depth).join("/");
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  }
  let best = "";
  for (const [key, count] of counts) {
    if (count >= 0.6 * nodes.length && key.length > best.length) best = key;
  }
  if (best) return rangeIn(best, nodes);
  const operators = new Map();
  for (const node of nodes) operators.set(opOf(node), (operators.get(opOf(node)) ?? 0) + 1);
  return [...operators].sort((a, b) => b[1] - a[1]).slice(0, 3).map(([op, count]) => `${count} ${cut(op, 20)}`).join(", ");
}

// "model/layers.0 to layers.19": the first and the last part of a folder that the block holds.
function rangeIn(folder, nodes) {
  const depth = folder.split("/").length;
  const inside = nodes.map(pathOf).filter(path => path.length > depth && path.slice(0, depth).join("/") === folder);
  const first = inside[0]?.[depth], last = inside.at(-1)?.[depth];
  if (!first) return folder;
  return first === last ? `${folder}/${first}` : `${folder}/${first} to ${last}`;
}

// Found when it is first shown: a large model has many blocks.
function blockTitle(block) {
  block.title ??= [block.owner, block.isRun ? titleOfBlock(block.nodes) : ""].filter(text => text).join(": ") || "nodes";
  return block.title;
}

// A block: its nodes, whether it is open, where it is (y; x is centred), its size, and its layout.
function makeBlock(nodes, kind, {title = null, owner = "", isRun = false}, isOpen) {
  return {nodes, kind, title, owner, isRun, isOpen, layout: null, y: 0, width: 0, height: 0, enters: [], leaves: []};
}

const BLOCKS = [];
const BLOCK_OF = new Int32Array(COUNT);

// Values that one block makes and a later one reads are ports of all blocks from one to the other.
// `from` to `to`: the blocks of one graph.
function addPorts(from, to) {
  const lastReader = new Map();
  for (let b = from; b < to; ++b) {
    for (const node of BLOCKS[b].nodes) {
      let last = b;
      for (const reader of AFTER[node]) {
        if (BLOCK_OF[reader] < to) last = Math.max(last, BLOCK_OF[reader]);
      }
      lastReader.set(node, last);
    }
  }
  for (let b = from; b < to; ++b) {
    const crossing = [...BLOCKS[b].nodes, ...BLOCKS[b].enters].filter(node => lastReader.get(node) > b);
    // Values that are needed soon are drawn; those that live long would only be lines.
    crossing.sort((a, c) => lastReader.get(a) - lastReader.get(c));
    BLOCKS[b].leaves = crossing.slice(0, MOST_CROSSING);
    if (b + 1 < to) BLOCKS[b + 1].enters = BLOCKS[b].leaves;
  }
}

(() => {
  const parts = new Map();
  for (let node = 0; node < COUNT; ++node) {
    const part = NODES.part[node];
    if (!parts.has(part)) parts.set(part, []);
    parts.get(part).push(node);
  }
  const isOpen = COUNT <= MOST_OPEN;
  for (const [part, nodes] of [...parts].sort((a, b) => (a[0] < 0) - (b[0] < 0) || a[0] - b[0])) {
    const first = BLOCKS.length;
    if (part < 0) {
      BLOCKS.push(makeBlock(nodes, "folded", {title: `${counted(nodes.length, "node")} computed at import, or not needed`}, nodes.length <= 60 && isOpen));
    } else {
      const owner = part > 0 ? `body of ${cutAtStart(nameOf(NODES.owners[part - 1]), 40)}` : "";
      const runs = cutIntoRuns(nodes);
      for (const run of runs) {
        BLOCKS.push(makeBlock(run, "graph", {owner, isRun: runs.length > 1}, isOpen));
      }
    }
    for (let b = first; b < BLOCKS.length; ++b) for (const node of BLOCKS[b].nodes) BLOCK_OF[node] = b;
    if (part >= 0) addPorts(first, BLOCKS.length);
  }
})();
