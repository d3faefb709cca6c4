// Keeps <time data-clock> going between two updates. The node's clock counts:
// its difference from the browser's is taken out.

let skew = 0;

const two = (n) => String(n).padStart(2, "0");

export function span(ms) {
  const s = Math.max(0, ms / 1000), n = Math.floor(s);
  if (s < 9.95) return `${s.toFixed(1)} s`;
  if (n < 60) return `${n} s`;
  if (n < 3600) return `${Math.floor(n / 60)} min ${two(n % 60)} s`;
  if (n < 86400) return `${Math.floor(n / 3600)} h ${two(Math.floor(n / 60) % 60)} min`;
  return `${Math.floor(n / 86400)} d ${Math.floor(n / 3600) % 24} h`;
}

export function ago(ms) {
  const n = Math.floor(ms / 1000);
  if (n < 5) return "just now";
  if (n < 60) return `${n} s ago`;
  if (n < 3600) return `${Math.floor(n / 60)} min ago`;
  if (n < 86400) return `${Math.floor(n / 3600)} h ago`;
  return `${Math.floor(n / 86400)} d ago`;
}

function tick() {
  const now = Date.now() + skew;
  for (const el of document.querySelectorAll("time[data-clock]")) {
    const at = Date.parse(el.dateTime);
    let text;
    if (Number.isNaN(at)) text = "";
    else if (el.dataset.clock === "ago") text = ago(now - at);
    else if (el.dataset.clock === "until") text = at > now ? `in ${span(at - now)}` : "now";
    else text = span((Date.parse(el.dataset.until) || now) - at);
    if (el.textContent !== text) el.textContent = text;
    if (text && el.dataset.clock === "ago") el.title = new Date(at).toLocaleString();
  }
}

// setClock tells what time it is at the node.
export function setClock(now) {
  const at = Date.parse(now);
  if (!Number.isNaN(at)) skew = at - Date.now();
  tick();
}

export function startClock() {
  tick();
  setInterval(tick, 1000);
}
