// Paths of the lines between nodes.

// A smooth line through points: straight at its ends, and rounded at the points between.
function curve(points) {
  const p = points.map(({x, y}) => [Math.round(x), Math.round(y)]);
  let path = `M${p[0]}`;
  for (let i = 1; i < p.length - 1; ++i) {
    const next = i === p.length - 2 ? p[i + 1] : [(p[i][0] + p[i + 1][0]) / 2, (p[i][1] + p[i + 1][1]) / 2];
    path += `Q${p[i]} ${next}`;
  }
  return p.length === 2 ? path + `L${p[1]}` : path;
}

// From one block to the next.
function bridge(x1, y1, x2, y2) {
  const middle = (y1 + y2) / 2;
  return `M${Math.round(x1)},${y1}C${Math.round(x1)},${middle} ${Math.round(x2)},${middle} ${Math.round(x2)},${y2}`;
}

// The lines of the gap below a block, one path. A closed block has all its lines in its middle.
function bridges(block, next) {
  if (!next || !block.leaves.length) return "";
  const y1 = block.y + block.height, y2 = next.y;
  const x1 = value => (block.isOpen && block.layout ? block.layout.leaves.get(value) ?? 0 : 0);
  const x2 = value => (next.isOpen && next.layout ? next.layout.enters.get(value) ?? 0 : 0);
  return [...new Set(block.leaves.map(value => bridge(x1(value), y1, x2(value), y2)))].join("");
}
