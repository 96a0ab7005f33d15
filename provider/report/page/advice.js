// The ranked list of what to change in the model, with what each change would bring.

const SHOWN_ADVICE = 5;

// What a change brings, as short facts.
function gainFacts(target, gain) {
  const {summary} = TARGETS[target];
  const facts = [["nodes", gain.nodes ? `+${gain.nodes.toLocaleString("en")}` : "parts of nodes", "nodes that would move to the engine"]];
  if (gain.macs === null) {
    facts.push(["MACs", "?", "their sizes are not known"]);
  } else if (gain.macs > 0) {
    const share = summary.macs ? ` (${percent(gain.macs / summary.macs)})` : "";
    facts.push(["MACs", `+${short(gain.macs)}${share}`, "multiply-accumulates that would move to the engine"]);
  }
  const now = summary.engine_segments;
  facts.push(["segments", now === gain.segments ? `${now}, as now` : `${now} \u2192 ${gain.segments}`,
              "engine segments now, and if these nodes were accepted"]);
  if (gain.at_most_us !== null) {
    facts.push(["time", `at most \u2212${timeText(gain.at_most_us)}`,
                `upper bound of what a run of ${timeText(summary.estimate_us)} would save`]);
  } else if (gain.dispatch_us) {
    const less = gain.dispatch_us > 0;
    facts.push(["dispatches", `${less ? "\u2212" : "+"}${timeText(Math.abs(gain.dispatch_us))}`,
                "the time of the dispatches of engine segments; that of the CPU nodes is not known"]);
  }
  return el("dl.gain", {}, facts.map(([what, value, title]) =>
    el("div", {title}, el("dt", {}, what), el("dd", {}, value))));
}

function operatorsText(operators) {
  const shown = operators.slice(0, 4).map(([name, count]) => `${count} ${cut(name, 40)}`);
  return shown.join(", ") + (operators.length > 4 ? ", \u2026" : "");
}

const asksForNothing = item => item.remedy.startsWith("no action needed");

// Neither a change is asked for, nor would it bring anything.
function isIdle(target, item) {
  if (item.rule === "latency") return true;  // the engine was estimated to be slower
  return asksForNothing(item) && !item.gain.macs && item.gain.macs !== null &&
    item.gain.segments >= TARGETS[target].summary.engine_segments;
}

function adviceItem(target, item) {
  const idle = isIdle(target, item);
  const title = asksForNothing(item) && !idle ? `replace ${operatorsText(item.operators)} by operators that run on the engine`
    : item.remedy || item.sentence || item.quote || item.rule;
  const why = [el("span.layer", {}, item.layer), " ", printable(item.sentence || "no text known")];
  if (item.quote && item.quote !== item.sentence) why.push(": ", el("q", {}, cut(item.quote, 300)));
  return el(idle ? "li.idle" : "li", {},
    el("p.remedy", {}, cut(title, 400)),
    idle ? null : gainFacts(target, item.gain),
    el("p.why", {}, operatorsText(item.operators), el("span.dash", {}, " \u2013 "), ...why),
    el("p.note", {}, el("code", {}, printable(item.rule)), " \u00b7 ", cut(item.source, 160)),
    el("button.link", {type: "button", onclick: () => {
      mark(new Set(item.places));
      chooseNode(item.places[0], true);
      byId("graph").focus({preventScroll: true});
    }}, item.places.length === 1 ? "show the node" : `show the ${counted(item.places.length, "node")}`));
}

function showAdvice() {
  const target = state.target, {items, all} = TARGETS[target].advice, box = byId("advice");
  if (!items.length) {
    box.replaceChildren(el("p.box", {}, TARGETS[target].summary.engine_nodes
      ? "Nothing: every node that computes runs on the engine."
      : "Nothing: no node is left to compute."));
    return;
  }
  const idle = items.filter(item => isIdle(target, item)), active = items.filter(item => !isIdle(target, item));
  const list = el("ol", {}, active.slice(0, SHOWN_ADVICE).map(item => adviceItem(target, item)));
  const parts = [];
  if (active.length) {
    parts.push(el("p.note", {}, "Best first. Each line says what the plan would be if these nodes were accepted: nodes, MACs and ",
      "segments are counted; the time is an upper bound, because a refused node has no estimate on the engine."), list);
  } else {
    parts.push(el("p.box", {}, "Nothing that would bring something: what stays on the CPU is best left there."));
  }
  if (active.length > SHOWN_ADVICE) {
    const rest = active.slice(SHOWN_ADVICE);
    parts.push(el("button.more", {type: "button", onclick: event => {
      list.append(...rest.map(item => adviceItem(target, item)));
      event.target.remove();
      list.children[SHOWN_ADVICE].querySelector("button").focus();
    }}, `show ${rest.length} more`));
  }
  if (active.length > 1) {
    parts.push(el("div.all", {}, el("p", {}, el("b", {}, "All together")), gainFacts(target, all)));
  }
  if (idle.length) {
    parts.push(el("details", {}, el("summary", {}, `${counted(idle.length, "reason")} that ${idle.length === 1 ? "asks" : "ask"} for no change`),
                  el("ol", {}, idle.map(item => adviceItem(target, item)))));
  }
  box.replaceChildren(...parts);
}

watch("target", showAdvice);
