// Texts and elements. Texts of the model are put into the page only here, as text nodes.

// Characters that print nothing, or that turn the direction of the line, are shown as codes.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

function printable(text) {
  return text.replace(UNSEEN, c => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

// At most `most` characters; the end of a path says more than its beginning.
function cutAtStart(text, most) {
  const shown = [...printable(text.length > 4 * most ? text.slice(-4 * most) : text)];
  return shown.length <= most && text.length <= 4 * most
    ? shown.join("") : "\u2026" + shown.slice(1 - most).join("");
}

function cut(text, most) {
  const shown = [...printable(text.slice(0, 4 * most))];
  return shown.length <= most && text.length <= 4 * most
    ? shown.join("") : shown.slice(0, most - 1).join("") + "\u2026";
}

// el("p.note", {title: "..."}, "text", otherElement, null)
function el(what, properties, ...children) {
  const [tag, ...classes] = what.split(".");
  const made = document.createElement(tag);
  if (classes.length) made.className = classes.join(" ");
  for (const [key, value] of Object.entries(properties ?? {})) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key in made && typeof value !== "string") made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.flat().filter(child => child !== null && child !== undefined));
  return made;
}

// A name of the model: its direction does not change that of the text around it.
function nameText(text, most = 80) {
  return el("bdi.name", text.length > most ? {title: cut(text, 400)} : {}, cutAtStart(text, most));
}

const byId = id => document.getElementById(id);

function counted(count, what) {
  return `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
}

// "1.82 G", as the command writes it.
function short(count) {
  if (count === null || count === undefined) return "?";
  let value = count, suffix = "";
  for (const next of ["k", "M", "G", "T", "P"]) {
    if (value < 999.5) break;
    value /= 1000;
    suffix = "\u00a0" + next;
  }
  if (!suffix) return String(Math.round(value));
  return value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0) + suffix;
}

const bytesText = bytes => short(bytes) + (bytes < 999.5 ? "\u00a0B" : "B");

// Only all is 100 %, and only nothing is 0 %.
function percent(share) {
  if (share <= 0) return "0\u00a0%";
  if (share >= 1) return "100\u00a0%";
  return Math.min(99.9, Math.max(0.1, 100 * share)).toFixed(1).replace(/\.0$/, "") + "\u00a0%";
}

// As TimeText() of engine/cost.h.
function timeText(us) {
  if (us === null || us === undefined) return "?";
  if (us < 0.05) return "<\u00a00.1\u00a0\u00b5s";
  const value = us < 999.5 ? us : us / 1000;
  const number = value < 999.5 ? Number(value.toPrecision(3)) : value.toFixed(0);
  return number + "\u00a0" + (us < 999.5 ? "\u00b5s" : "ms");
}

// The words of interface.md for how far a fact can be trusted, as the command says them.
function statusText(status) {
  return {measured: "measured", "decompile-derived": "from reverse engineering",
          predicted: "predicted"}[status] ?? "not all known";
}
