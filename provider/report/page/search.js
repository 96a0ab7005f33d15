// Finds nodes by words of their names, operators, rules and placements. Matches stand out in the graph;
// Enter or a click chooses one.

const SHOWN_MATCHES = 60;
const search = byId("search"), found = byId("found"), count = byId("count");

function searchText(node) {
  const {entries, reasons} = TARGETS[state.target], at = entries.of[node];
  const rule = at >= 0 && entries.reason[at] >= 0 ? reasons[entries.reason[at]].rule ?? "" : "";
  return `${nameOf(node)} ${NODES.id[node]} ${opOf(node)} ${rule} ${PLACE_WORDS[placeOf(state.target, node)]}`.toLowerCase();
}

function matches() {
  const words = search.value.toLowerCase().split(/\s+/).filter(word => word);
  if (!words.length) return null;
  const list = [];
  for (let node = 0; node < COUNT; ++node) {
    const text = searchText(node);
    if (words.every(word => text.includes(word))) list.push(node);
  }
  // The name as it was typed comes first.
  const whole = search.value.trim();
  const rank = node => (nameOf(node) === whole || NODES.id[node] === whole ? 0 : nameOf(node).startsWith(whole) ? 1 : 2);
  return list.map(node => [rank(node), node]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(([, node]) => node);
}

function matchItem(node) {
  return el("li", {}, el("button", {type: "button", onclick: () => chooseNode(node, true), onkeydown: moveInList},
    badge(placeOf(state.target, node)), " ", nameText(nameOf(node), 60), el("small", {}, " ", cut(opOf(node), 30))));
}

function moveInList(event) {
  const step = {ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling"}[event.key];
  if (event.key === "Escape") clearSearch();
  if (!step) return;
  event.preventDefault();
  (event.target.closest("li")[step]?.firstChild ?? search).focus();
}

function clearSearch() {
  search.value = "";
  searched();
  search.focus();
}

function searched() {
  const list = matches();
  found.hidden = list === null || list.length === 0;
  count.textContent = list === null ? "" : list.length ? counted(list.length, "node") : "no node";
  mark(list === null ? null : new Set(list));
  if (list === null) return;
  found.replaceChildren(...list.slice(0, SHOWN_MATCHES).map(matchItem));
  if (list.length > SHOWN_MATCHES) found.append(el("li.note", {}, `and ${(list.length - SHOWN_MATCHES).toLocaleString("en")} more`));
  if (list.length === 1) chooseNode(list[0], true);
}

function listenToSearch() {
  search.addEventListener("input", searched);
  search.addEventListener("keydown", event => {
    const first = found.querySelector("button");
    if (event.key === "Enter" && !found.hidden && first) first.click();
    else if (event.key === "ArrowDown" && !found.hidden && first) first.focus();
    else if (event.key === "Escape") clearSearch();
    else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", event => {
    if (event.key !== "/" || /^(input|textarea)$/i.test(document.activeElement.tagName)) return;
    event.preventDefault();
    search.focus();
  });
}
