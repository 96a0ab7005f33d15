// The table of models sorts by a click on a head (or Enter) and is filtered by the words in #search. The
// buttons in #targets choose the target that is shown.
const table = document.querySelector("#models"), body = table.tBodies[0];
const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];

function sort(head) {
  const column = heads.indexOf(head);
  const value = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
  const areNumbers = [...body.rows].every(row => !isNaN(value(row)));
  const first = areNumbers ? "descending" : "ascending";
  const second = areNumbers ? "ascending" : "descending";
  const wanted = head.ariaSort === first ? second : first;
  for (const other of heads) other.removeAttribute("aria-sort");
  head.ariaSort = wanted;
  const order = (a, b) => {
    const x = value(a), y = value(b);
    if (x === "" || y === "") return (x === "") - (y === "");  // unknown values are last
    const by = areNumbers ? x - y : x.localeCompare(y);
    return wanted === "ascending" ? by : -by;
  };
  body.append(...[...body.rows].sort(order));
}
for (const head of heads) {
  head.tabIndex = 0;
  head.onclick = () => sort(head);
  head.onkeydown = event => { if (event.key === "Enter") sort(head); };
}

const search = document.querySelector("#search"), shown = document.querySelector("#shown");
function filter() {
  const words = search.value.toLowerCase().split(/\s+/);
  let count = 0;
  for (const row of body.rows) {
    const text = (row.cells[0].textContent + " " + row.dataset.words).toLowerCase();
    row.hidden = !words.every(word => text.includes(word));
    count += !row.hidden;
  }
  shown.textContent = count;
}
search.oninput = filter;
filter();  // a browser keeps the words when the page is loaded again

const buttons = [...document.querySelectorAll("#targets button")];
const rule = document.head.appendChild(document.createElement("style"));
function choose(button) {
  for (const other of buttons) other.ariaPressed = other === button;
  rule.textContent = button.value === "" ? "" : `.target:not(.target-${button.value}) { display: none; }`;
}
for (const button of buttons) button.onclick = () => choose(button);
if (buttons.length) choose(buttons[0]);
