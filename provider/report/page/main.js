// Shows the page.

showFile();
showFree();
showPicker();
showMeasures();
listen();
listenToSearch();
for (const block of BLOCKS) sizeBlock(block, false);
fit();
set("target", 0);
showNode(-1);

// Blocks out of view are laid out when nothing else is to do, so that a move finds them ready.
(function prepare(deadline) {
  const waiting = BLOCKS.find(block => block.isOpen && block.layout === null);
  if (!waiting) return;
  if (deadline && deadline.timeRemaining() > 5) {
    const height = waiting.height, above = waiting.y + height < rectangle(0).top;
    sizeBlock(waiting, true);
    if (waiting.height !== height) {
      stack();
      if (above) view.y -= (waiting.height - height) * view.scale;
      if (waiting.y < rectangle(0.5).bottom) refresh();
    }
  }
  requestIdleCallback(prepare);
})(null);
