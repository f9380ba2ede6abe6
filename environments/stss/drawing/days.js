// @ts-check
// Moves through the two days: by the slider, by the buttons, by the arrow keys, by the times of talks.
// All that it shows stands in the page: spots in `data-moves`, stays in the tables, talks in the list.

const SVG = "http://www.w3.org/2000/svg";
const root = /** @type {HTMLElement} */ (document.querySelector(".days"));
/** @param {string} selector @returns {HTMLElement} */
const find = (selector) => /** @type {HTMLElement} */ (root.querySelector(selector));
/** @param {string} selector @returns {HTMLElement[]} */
const all = (selector) => [...root.querySelectorAll(selector)].map((each) => /** @type {HTMLElement} */ (each));

const slider = /** @type {HTMLInputElement} */ (find("input[type=range]"));
const days = all(".days-story h2").slice(1).map((heading) => heading.textContent ?? "");
const dots = all(".days-dot").sort((one, other) => Number(one.dataset.person) - Number(other.dataset.person));
const ways = dots.map((dot) => (dot.dataset.moves ?? "").split(" ").filter(Boolean).map((move) => move.split(",").map(Number)));
const stays = all(".days-stays").map((table) => [...table.querySelectorAll("tr[data-from]")].map((row) => /** @type {HTMLTableRowElement} */ (row)));
const rows = all(".days-now tbody tr").map((row) => /** @type {HTMLTableRowElement} */ (row));
const talks = all("li[data-from]");
const stops = talks.filter((talk) => talk.classList.contains("days-mine"));
const lines = find(".days-talks");

/**
 * The last of some things that begins at a minute or before.
 * @template T
 * @param {T[]} things
 * @param {(thing: T) => number} begin
 * @param {number} minute
 */
function latest(things, begin, minute) {
  let found = things[0];
  for (const thing of things) {
    if (begin(thing) > minute) break;
    found = thing;
  }
  return found;
}

/** @param {HTMLElement} element */
const from = (element) => Number(element.dataset.from);

/** @param {number} minute */
function clock(minute) {
  const time = minute % 1440;
  const day = days[Math.floor(minute / 1440)];
  return `${day}, ${String(Math.floor(time / 60)).padStart(2, "0")}:${String(time % 60).padStart(2, "0")}`;
}

/**
 * Show where everybody is at a minute, and who talks then.
 * @param {number} minute
 */
function show(minute) {
  slider.value = String(minute);
  slider.setAttribute("aria-valuetext", clock(minute));
  find(".days-clock").textContent = clock(minute);
  const spots = ways.map((way) => latest(way, (move) => move[0], minute) ?? [0, 0, 0]);
  dots.forEach((dot, index) => dot.setAttribute("transform", `translate(${spots[index][1]} ${spots[index][2]})`));
  rows.forEach((row, index) => {
    const stay = latest(stays[index], from, minute);
    row.cells[1].textContent = stay?.cells[1].textContent ?? "";
    row.cells[2].textContent = stay?.cells[2].textContent ?? "";
  });
  lines.replaceChildren();
  for (const talk of talks) {
    const on = from(talk) <= minute && minute < Number(talk.dataset.until);
    if (on) talk.setAttribute("aria-current", "step");
    else talk.removeAttribute("aria-current");
    const [one, other] = (talk.dataset.people ?? "").split(" ").map((index) => spots[Number(index)]);
    if (on && one && other) {
      const line = document.createElementNS(SVG, "line");
      for (const [name, value] of [["x1", one[1]], ["y1", one[2]], ["x2", other[1]], ["y2", other[2]]]) {
        line.setAttribute(String(name), String(value));
      }
      lines.append(line);
    }
  }
}

/**
 * Go to the talk of the performer before (-1) or after (1) the shown time.
 * @param {number} step
 */
function go(step) {
  const minute = Number(slider.value);
  const found = step > 0 ? stops.find((talk) => from(talk) > minute) : stops.findLast((talk) => from(talk) < minute);
  if (found) {
    show(from(found));
    found.scrollIntoView({ block: "nearest" });
  }
}

function goToHash() {
  const talk = talks.find((each) => `#${each.id}` === location.hash);
  if (talk) show(from(talk));
}

slider.addEventListener("input", () => show(Number(slider.value)));
find(".days-back").addEventListener("click", () => go(-1));
find(".days-on").addEventListener("click", () => go(1));
addEventListener("hashchange", goToHash);
document.addEventListener("keydown", (event) => {
  const free = document.activeElement === document.body || document.activeElement?.matches("button, summary, a");
  if (!free || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
  if (event.key === "ArrowLeft") go(-1);
  if (event.key === "ArrowRight") go(1);
});
find(".days-controls").hidden = false;
find(".days-columns").classList.add("days-live");
show(stops.length ? from(stops[0]) : Number(slider.value));
goToHash();
