// What the user has chosen. Parts of the page register what they do when it changes.

const state = {target: 0, node: -1, marked: null};
const watchers = {target: [], node: [], marked: []};

function watch(what, action) {
  watchers[what].push(action);
}

function set(what, value, ...how) {
  state[what] = value;
  for (const action of watchers[what]) action(value, ...how);
}

const chooseTarget = target => set("target", target);
// `jump`: also show it in the graph.
const chooseNode = (node, jump = false) => set("node", node, jump);
// A set of nodes that the graph shows stronger than the others; null for none.
const mark = nodes => set("marked", nodes);
