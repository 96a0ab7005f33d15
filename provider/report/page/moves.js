// Pan, zoom and the keyboard.

function moveBy(x, y) {
  view.x += x;
  view.y += y;
  showView();
}

// The node that an arrow key leads to from `node`: the nearest of those read, those that read it, or
// those beside it.
function nodeBeside(node, key) {
  const block = BLOCKS[BLOCK_OF[node]], here = middleOf(node);
  const nearest = (nodes, distance) => nodes.reduce((best, other) => {
    const far = distance(other);
    return far < best.far ? {other, far} : best;
  }, {other: -1, far: Infinity}).other;
  if (key === "ArrowUp" || key === "ArrowDown") {
    const list = key === "ArrowUp" ? BEFORE[node] : AFTER[node];
    const near = list.filter(other => BLOCKS[BLOCK_OF[other]].isOpen);
    return nearest(near.length ? near : list, other => BLOCKS[BLOCK_OF[other]].layout
      ? Math.abs(middleOf(other).x - here.x) + Math.abs(middleOf(other).y - here.y) : 1e9 + other);
  }
  const side = key === "ArrowLeft" ? -1 : 1;
  return nearest([...block.layout.boxes.keys()], other => {
    const {x, y} = middleOf(other);
    return other !== node && (x - here.x) * side > 1 && Math.abs(y - here.y) < 160 ? Math.abs(x - here.x) + 4 * Math.abs(y - here.y) : Infinity;
  });
}

function focusNode(node) {
  cursor = node;
  goTo(node, false);
  if (!elements.has(node)) {
    drawn = null;
    showView();
  }
  elements.get(node)?.focus({preventScroll: true});
}

// The topmost node in view.
function firstInView() {
  let best = -1, top = Infinity;
  const rect = rectangle(0);
  for (const node of elements.keys()) {
    const {y} = middleOf(node);
    if (y >= rect.top && y < top) [best, top] = [node, y];
  }
  return best >= 0 ? best : 0;
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const on = event.target;
  if (on.block && (event.key === "Enter" || event.key === " ")) {
    openBlock(on.block, !on.block.isOpen);
    const again = [...frames].find(([block]) => block === on.block);
    again?.[1].querySelector(".press")?.focus({preventScroll: true});
  } else if (event.key.startsWith("Arrow")) {
    const from = on.node ?? (cursor >= 0 ? cursor : -1);
    const next = from < 0 ? firstInView() : on.node === undefined ? from : nodeBeside(from, event.key);
    if (next >= 0) focusNode(next);
  } else if (event.key === "Enter" || event.key === " ") {
    if (on.node !== undefined) chooseNode(on.node);
  } else if (event.key === "Escape") {
    mark(null);
    chooseNode(-1);
    graphBox.focus({preventScroll: true});
  } else if (event.key === "+" || event.key === "=") zoom(1.25);
  else if (event.key === "-") zoom(0.8);
  else if (event.key === "0") fit();
  else return;
  event.preventDefault();
}

// Drags move; two fingers zoom; a press without a move is a click.
const pointers = new Map();
let moved = 0;

function pointerDown(event) {
  if (event.button > 0) return;
  pointers.set(event.pointerId, {x: event.clientX, y: event.clientY});
  moved = 0;
}

function pointerMove(event) {
  const last = pointers.get(event.pointerId);
  if (!last) return;
  const now = {x: event.clientX, y: event.clientY}, others = [...pointers].filter(([id]) => id !== event.pointerId);
  moved += Math.abs(now.x - last.x) + Math.abs(now.y - last.y);
  if (moved > 4 && !graphBox.hasPointerCapture(event.pointerId)) graphBox.setPointerCapture(event.pointerId);
  if (others.length) {
    const other = others[0][1], box = graphBox.getBoundingClientRect();
    const span = point => Math.hypot(point.x - other.x, point.y - other.y) || 1;
    zoom(span(now) / span(last), (now.x + other.x) / 2 - box.left, (now.y + other.y) / 2 - box.top);
  } else if (moved > 4) {
    moveBy(now.x - last.x, now.y - last.y);
    graphBox.classList.add("dragged");
  }
  pointers.set(event.pointerId, now);
}

function pointerUp(event) {
  pointers.delete(event.pointerId);
  graphBox.classList.remove("dragged");
}

function clicked(event) {
  if (moved > 4) return;
  const press = event.target.closest?.(".press");
  if (press) {
    openBlock(press.block, !press.block.isOpen);
    return;
  }
  const element = event.target.closest?.("[data-node]");
  if (element) {
    chooseNode(element.node);
    elements.get(element.node)?.focus({preventScroll: true});
  } else if (state.marked !== null) {
    mark(null);
  }
}

// With Ctrl a wheel zooms. Alone it moves the graph, if the graph has the focus; else the page scrolls.
function wheeled(event) {
  if (event.ctrlKey || event.metaKey) {
    const box = graphBox.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);
  } else if (graphBox.contains(document.activeElement)) {
    moveBy(-event.deltaX, -event.deltaY);
  } else {
    return;
  }
  event.preventDefault();
}

function listen() {
  graphBox.addEventListener("keydown", pressed);
  graphBox.addEventListener("pointerdown", pointerDown);
  graphBox.addEventListener("pointermove", pointerMove);
  for (const end of ["pointerup", "pointercancel"]) graphBox.addEventListener(end, pointerUp);
  graphBox.addEventListener("click", clicked);
  graphBox.addEventListener("wheel", wheeled, {passive: false});
  // A focused element may lie outside the window; the view moves, not the box.
  graphBox.addEventListener("scroll", () => { graphBox.scrollTop = graphBox.scrollLeft = 0; });
  byId("zoom-in").addEventListener("click", () => zoom(1.25));
  byId("zoom-out").addEventListener("click", () => zoom(0.8));
  byId("fit").addEventListener("click", fit);
  byId("fold").addEventListener("click", toggleAll);
  let width = graphBox.clientWidth;
  new ResizeObserver(() => {
    if (graphBox.clientWidth === width) return;
    view.x += (graphBox.clientWidth - width) / 2;
    width = graphBox.clientWidth;
    drawn = null;
    drawStrip();
    showView();
  }).observe(graphBox);
}
