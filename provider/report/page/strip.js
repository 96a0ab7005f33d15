// A strip beside the graph: all nodes in the order of the blocks, with those on the CPU standing out, and
// what is in view. A press goes there.

const strip = byId("strip");
const ORDER = BLOCKS.filter(block => block.kind === "graph").flatMap(block => block.nodes);
const STARTS = new Map();  // block -> the place of its first node in ORDER
{
  let at = 0;
  for (const block of BLOCKS) {
    if (block.kind !== "graph") continue;
    STARTS.set(block, at);
    at += block.nodes.length;
  }
}
const seen = byId("seen");  // what is in view: 100 pixels high, scaled
let stripHeight = 0;

function drawStrip() {
  const ratio = devicePixelRatio, width = Math.round(strip.clientWidth * ratio), height = Math.round(graphBox.clientHeight * ratio);
  Object.assign(strip, {width, height});
  const context = strip.getContext("2d"), style = getComputedStyle(document.documentElement);
  const colour = ["--engine-soft", "--cpu", "--folded-soft"].map(name => style.getPropertyValue(name));
  const rows = Math.min(height, ORDER.length);
  for (let i = 0; i < rows; ++i) {
    const from = Math.floor(i * ORDER.length / rows), to = Math.floor((i + 1) * ORDER.length / rows);
    let place = FOLDED;
    for (let at = from; at < to; ++at) {
      const here = placeOf(state.target, ORDER[at]);
      if (here === CPU) place = CPU;
      else if (place !== CPU && here === ENGINE) place = ENGINE;
    }
    context.fillStyle = colour[place];
    const top = Math.floor(i * height / rows);
    context.fillRect(0, top, width, Math.max(place === CPU ? 2 * ratio : 1, Math.ceil((i + 1) * height / rows) - top));
  }
  stripHeight = graphBox.clientHeight;
  showInStrip();
}

// The part of ORDER at a height of the world.
function orderAt(y) {
  let at = 0;
  for (const [block, start] of STARTS) {
    if (y < block.y) return at;
    const part = Math.min(1, (y - block.y) / block.height);
    at = start + part * block.nodes.length;
  }
  return at;
}

// Called in every frame of a move: nothing here may need a layout.
function showInStrip() {
  const {top, bottom} = rectangle(0), from = orderAt(top) / ORDER.length, to = orderAt(bottom) / ORDER.length;
  seen.style.transform = `translateY(${from * stripHeight}px) scaleY(${Math.max(4, (to - from) * stripHeight) / 100})`;
}

function listenToStrip() {
  const go = event => {
    const part = (event.clientY - strip.getBoundingClientRect().top) / strip.clientHeight;
    goTo(ORDER[Math.max(0, Math.min(ORDER.length - 1, Math.floor(part * ORDER.length)))]);
    event.stopPropagation();
  };
  strip.hidden = seen.hidden = ORDER.length < 2;
  strip.addEventListener("pointerdown", go);
  strip.addEventListener("click", event => event.stopPropagation());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawStrip);
}

watch("target", drawStrip);
