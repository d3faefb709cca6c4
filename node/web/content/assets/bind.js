// Puts a view (plain data from the node) into the elements that ask for it:
//   data-bind="text=name hidden=!busy href=link"   target=path, path from the nearest row
//   data-each="jobs" data-proto="p-job"            one copy of the prototype per element, by its key
// The text of a <time> is left to clock.js. Texts become text, never markup; only the attributes below can be set.

const allowed = new Set(["title", "datetime", "aria-label", "data-until", "data-tone", "data-kind", "data-rank",
  "data-load", "data-whose", "data-state", "data-wave", "data-hop",
  "x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "width", "height", "viewBox", "d", "value"]);

function look(data, path) {
  return path.split(".").reduce((value, name) => value?.[name], data);
}

function put(el, target, value) {
  if (target === "text") {
    const text = value ?? "";
    if (el.textContent !== String(text)) el.textContent = text;
  } else if (target === "hidden") {
    el.toggleAttribute("hidden", Boolean(value));
  } else if (target === "href") {
    if (/^(\/(jobs|nodes)\/|\?)/.test(value)) set(el, "href", value);
  } else if (allowed.has(target)) {
    set(el, target, value ?? "");
  }
}

function set(el, name, value) {
  if (el.getAttribute(name) !== String(value)) el.setAttribute(name, value);
}

function bindOne(el, data) {
  for (const pair of el.dataset.bind.split(" ")) {
    const [target, path] = pair.split("=");
    const not = path.startsWith("!");
    let value = look(data, not ? path.slice(1) : path);
    if (not) value = !value || (Array.isArray(value) && value.length === 0);
    put(el, target, value);
  }
}

function list(parent, items) {
  const proto = document.getElementById(parent.dataset.proto).content.querySelector("[data-key]");
  const old = new Map();
  for (const child of parent.children) old.set(child.dataset.key, child);
  let next = parent.firstElementChild;
  for (const item of items ?? []) {
    const key = String(item.key);
    let child = old.get(key);
    old.delete(key);
    if (!child) {
      child = document.importNode(proto, true);
      child.dataset.key = key;
      child.classList.add("new");
    }
    if (child === next) next = next.nextElementSibling;
    else parent.insertBefore(child, next);
    bind(child, item);
  }
  for (const child of old.values()) child.remove();
  while (next) { // rows of a key that came twice
    const after = next.nextElementSibling;
    next.remove();
    next = after;
  }
}

export function bind(el, data) {
  if (el.dataset?.bind) bindOne(el, data);
  if (el.dataset?.each) {
    list(el, look(data, el.dataset.each));
    return;
  }
  for (const child of el.children) bind(child, data);
}
