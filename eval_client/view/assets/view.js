// @ts-check
// What pages do beyond links and forms: they follow a run under way, take keys, copy links, and fold turns.
// Every page works without this module. Pages say what it may do by attributes:
//   data-follow="ADDR"   on the header: where to ask how the page's run stands
//   data-live, data-live="ADDR"   with an id: fetched again when the run changed; from ADDR when its live view did
//   data-row                      a row or turn for j and k; its first link gets the focus
//   data-key="gt u"               a link that these keys follow, or a field that they focus

const ROW = "[data-row]";
const PREFIX_MS = 1500;
const SAID_MS = 4000;
const AGAIN_MS = 5000;
/** Between two questions about a run under way, and about one that is not; a view is shown anew for its clocks. */
const LOOK_MS = 1000, IDLE_MS = 3000, CLOCKS_MS = 5000;

/** @type {number | undefined} */
let fading;

/**
 * Say something in the corner, and to screen readers.
 * @param {string} text
 */
function say(text) {
  const corner = document.getElementById("said");
  if (!corner) return;
  corner.textContent = text;
  window.clearTimeout(fading);
  fading = window.setTimeout(() => { corner.textContent = ""; }, SAID_MS);
}

// --- Live updates ---

/**
 * The children of a node that a reader could see.
 * @param {Node} node
 */
function seen(node) {
  return [...node.childNodes].filter((each) => each instanceof Element || each.textContent?.trim());
}

/**
 * Whether two nodes are elements that differ in their content alone.
 * @param {Node} one
 * @param {Node} other
 */
function alike(one, other) {
  return one instanceof Element && one.cloneNode(false).isEqualNode(other.cloneNode(false));
}

/**
 * Make one node's content that of another. What is equal stays, and so do focus and selection in it.
 * @param {Node} old
 * @param {Node} fresh
 */
function update(old, fresh) {
  const before = seen(old);
  const after = seen(fresh);
  after.forEach((node, index) => {
    const was = before[index];
    if (!was) old.appendChild(node);
    else if (alike(was, node)) update(was, node);
    else if (!was.isEqualNode(node)) old.replaceChild(node, was);
  });
  before.slice(after.length).forEach((node) => old.removeChild(node));
}

/**
 * Update a fragment of the page; details stay open, and a link that was replaced passes on the focus.
 * @param {Element} old
 * @param {Element} fresh
 */
function renew(old, fresh) {
  const open = [...old.querySelectorAll("details")].map((each) => each.open);
  [...fresh.querySelectorAll("details")].forEach((each, index) => { each.open = open[index] ?? each.open; });
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  update(old, fresh);
  if (focused instanceof HTMLAnchorElement && document.activeElement !== focused) {
    [...old.querySelectorAll("a")].find((each) => each.href === focused.href)?.focus({ preventScroll: true });
  }
}

/** Fetches of fragments under way, and addresses to fetch once more after them. @type {Map<string, boolean>} */
const fetching = new Map();
/** The timer of the next fetch of a page whose answer was older than the run. */
let newer = 0;

/**
 * Fetch an address, and update those fragments of this page that it has; one fetch of an address at a time.
 * @param {string} address
 * @param {Element[]} fragments
 */
async function refresh(address, fragments) {
  if (!fragments.length) return;
  if (fetching.has(address)) {
    fetching.set(address, true);
    return;
  }
  fetching.set(address, false);
  try {
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    document.body.classList.toggle("away", answer.status === 503);
    const newerIn = answer.headers.get("Proctor-Newer-In");
    if (newerIn !== null) {
      window.clearTimeout(newer);
      newer = window.setTimeout(onChanged, 1000 * Number(newerIn) + 100);
    }
    if (answer.ok) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const old of fragments) {
        const fresh = page.getElementById(old.id) ?? (old.getAttribute("data-live") ? page.body : null);
        if (fresh) renew(old, fresh);
      }
    }
  } catch {
    document.body.classList.add("away");
  }
  const again = fetching.get(address);
  fetching.delete(address);
  if (again) await refresh(address, fragments);
}

/** Fetch what the page shows of the run. */
function onChanged() {
  refresh(location.href.replace(/#.*/, ""), [...document.querySelectorAll("[data-live='']")]);
}

/** Fetch the panels of the run's live view. */
function onLive() {
  for (const panel of document.querySelectorAll("[data-live]:not([data-live=''])")) {
    refresh(panel.getAttribute("data-live") ?? "", [panel]);
  }
}

/**
 * Ask how the run stands while this page can be seen, and fetch what has changed since the last answer.
 * @param {string} address
 */
function follow(address) {
  let version = "", shown = "", shownAt = 0;
  /** @type {number | undefined} */
  let next;
  const ask = async () => {
    let wait = AGAIN_MS;
    try {
      const answer = await fetch(address);
      document.body.classList.toggle("away", answer.status === 503);
      const now = answer.ok ? await answer.json() : { version: "", shown: "", live: null };
      if (answer.ok && now.version !== version) onChanged();
      if (answer.ok && (now.shown !== shown || (now.live && Date.now() - shownAt > CLOCKS_MS))) {
        shownAt = Date.now();
        onLive();
      }
      ({ version, shown } = now);
      if (answer.ok) wait = now.live ? LOOK_MS : IDLE_MS;
    } catch {
      document.body.classList.add("away");
      version = "";
    }
    next = document.visibilityState === "visible" ? window.setTimeout(ask, wait) : undefined;
  };
  const again = () => {
    if (document.visibilityState !== "visible" || next !== undefined) return;
    next = window.setTimeout(ask, 0);
  };
  const stop = () => {
    window.clearTimeout(next);
    next = undefined;
    version = "";
  };
  document.addEventListener("visibilitychange", () => (document.visibilityState === "visible" ? again() : stop()));
  window.addEventListener("pagehide", stop);
  window.addEventListener("pageshow", again);
  again();
}

// --- Keys ---

/** The rows and turns that can be seen. */
function rows() {
  return [...document.querySelectorAll(ROW)].filter((row) => row.getClientRects().length > 0);
}

/**
 * Focus the row so many after the one that has the focus.
 * @param {number} by
 */
function step(by) {
  const all = rows();
  const current = all.findIndex((row) => row.contains(document.activeElement));
  const index = current < 0 ? (by > 0 ? 0 : all.length - 1) : current + by;
  const row = all[Math.min(Math.max(index, 0), all.length - 1)];
  const target = row?.querySelector("a[href]");
  if (!row || !(target instanceof HTMLElement)) return;
  target.focus({ preventScroll: true });
  row.scrollIntoView({ block: row.classList.contains("turn") ? "start" : "nearest" });
}

/**
 * Follow the link, or focus the field, that is marked with these keys.
 * @param {string} keys
 * @returns {boolean} whether there is one
 */
function activate(keys) {
  const target = document.querySelector(`[data-key~="${keys}"]`);
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLAnchorElement) target.click();
  else target.focus();
  return true;
}

/**
 * Focus a field of the filters; from other pages of the run, go to the page that has them first.
 * @param {string} key
 */
function toField(key) {
  if (activate(key)) return;
  const trials = document.querySelector('a[data-key~="gt"]');
  if (trials instanceof HTMLAnchorElement) location.assign(`${trials.href}#key-${key}`);
}

/**
 * Follow a link of the page by its relation.
 * @param {string} relation
 */
function toRelated(relation) {
  const target = document.querySelector(`a[rel~="${relation}"]`);
  if (target instanceof HTMLElement) target.click();
}

/** Copy the address of the row or turn that has the focus, else that of the page. */
async function copyLink() {
  const link = document.activeElement?.closest(ROW)?.querySelector("a[href]");
  const address = link instanceof HTMLAnchorElement ? link.href : location.href;
  try {
    await navigator.clipboard.writeText(address);
    say(`Copied ${address}`);
  } catch {
    say(address); // the clipboard is closed to this page: to be copied by hand
  }
}

/** Open the list of keys, or close it. */
function toggleHelp() {
  const help = document.getElementById("keys");
  if (!(help instanceof HTMLDialogElement)) return;
  if (help.open) help.close();
  else help.showModal();
}

/** Fold all turns to their headings, or unfold them. */
function toggleFolds() {
  const folded = document.body.classList.toggle("folded");
  if (folded) document.querySelectorAll("main details").forEach((each) => each.removeAttribute("open"));
}

/** @type {Record<string, () => unknown>} */
const KEYS = {
  j: () => step(1),
  k: () => step(-1),
  u: () => activate("u"),
  s: () => activate("s"),
  c: copyLink,
  "[": () => toRelated("prev"),
  "]": () => toRelated("next"),
  "/": () => toField("/"),
  f: () => toField("f"),
  ".": toggleFolds,
  "?": toggleHelp,
  go: () => activate("go"),
  gt: () => activate("gt"),
};

/**
 * Whether keys that go to an element are text.
 * @param {EventTarget | null} target
 */
function isTyping(target) {
  return target instanceof HTMLElement && (target.isContentEditable || target.matches("input, textarea, select"));
}

/** When g was pressed, by the clock of events; the next key then belongs to it. */
let prefixedAt = -Infinity;

/** @param {KeyboardEvent} event */
function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isTyping(event.target)) return;
  const isHelp = document.querySelector("dialog[open]") !== null;
  if (isHelp && event.key !== "?") return;
  const prefixed = event.timeStamp - prefixedAt < PREFIX_MS;
  prefixedAt = !prefixed && event.key === "g" ? event.timeStamp : -Infinity;
  const name = prefixed ? `g${event.key}` : event.key;
  const act = Object.hasOwn(KEYS, name) ? KEYS[name] : undefined;
  if (!act) return;
  event.preventDefault();
  act();
}

/**
 * Add a button to the header: without this module it could do nothing.
 * @param {Element} header
 * @param {string} text
 * @param {string} key
 * @param {() => unknown} act
 */
function addButton(header, text, key, act) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "tool";
  button.title = `Key ${key}`;
  button.textContent = text;
  button.addEventListener("click", act);
  header.append(button);
}

const header = document.querySelector("header.top");
if (header) {
  addButton(header, "copy link", "c", copyLink);
  addButton(header, "keys", "?", toggleHelp);
  const address = header.getAttribute("data-follow");
  if (address) follow(address);
}
document.addEventListener("keydown", onKey);
for (const key of ["/", "f"]) {
  if (location.hash === `#key-${key}`) activate(key);
}
