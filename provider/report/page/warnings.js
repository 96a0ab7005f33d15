// Hazards and warnings, with their nodes.

function warningItem(warning) {
  const places = [...new Set(warning.places)];
  return el("li", {},
    el("p", {}, el("b", {}, cut(warning.message, 400))),
    warning.remedy ? el("p", {}, cut(warning.remedy, 400)) : null,
    el("p.note", {}, el("code", {}, printable(warning.rule)), warning.source ? ` \u00b7 ${cut(warning.source, 160)}` : "",
       warning.where ? ` \u00b7 ${cutAtStart(warning.where, 80)}` : ""),
    places.length ? el("button.link", {type: "button", onclick: () => {
      mark(new Set(places));
      chooseNode(places[0], true);
      byId("tools").scrollIntoView({block: "start"});
    }}, places.length === 1 ? "show the node" : `show the ${counted(places.length, "node")}`) : null);
}

function showWarnings() {
  const {warnings} = TARGETS[state.target];
  const ranked = [...warnings].sort((a, b) => (b.where !== null) - (a.where !== null) || b.count - a.count);
  byId("warnings").replaceChildren(ranked.length
    ? el("ul", {}, ranked.slice(0, 60).map(warningItem))
    : el("p.box", {}, "None for this target."),
    el("p.note", {}, "What fp16 does to the values of a run is found by running it: ", el("code", {}, "anemone run --hazards"), "."));
}

watch("target", showWarnings);
