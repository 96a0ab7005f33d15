// Shows the page.

showFile();
showFree();
showPicker();
showMeasures();
listen();
listenToStrip();
listenToSearch();
for (const block of BLOCKS) sizeBlock(block, false);
fit();
const usual = TARGETS.findIndex(target => target.target === "h13");
set("target", TARGETS.length > 6 && usual >= 0 ? usual : 0);  // of all targets, the command's default
showNode(-1);

// Safari has no requestIdleCallback.
const whenIdle = window.requestIdleCallback ?? (action => setTimeout(() => action({timeRemaining: () => 10}), 50));

// Blocks out of view are laid out when nothing else is to do, the nearest first, so that a move finds them
// ready.
(function prepare(deadline) {
  const {top, bottom} = rectangle(0), middle = (top + bottom) / 2;
  const distance = block => Math.abs(block.y + block.height / 2 - middle);
  let next = null;
  for (const block of BLOCKS) if (isWaiting(block) && (!next || distance(block) < distance(next))) next = block;
  if (!next) return;
  if (deadline && deadline.timeRemaining() > 5) {
    const height = next.height, isAbove = next.y + height < top, isNear = isSeen(next, rectangle(0.5));
    sizeBlock(next, true);
    stack();
    if (isAbove) view.y -= (next.height - height) * view.scale;
    if (isNear || isAbove && next.height !== height) refresh();
  }
  whenIdle(prepare);
})(null);
