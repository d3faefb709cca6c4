// A stream of events from the node that comes back by itself. It is closed
// while nobody looks at the page: browsers allow six connections to one node.

import { bind } from "./bind.js";
import { setClock, startClock } from "./clock.js";

const lost = document.getElementById("lost");
const live = document.getElementById("live");
const broken = new Set(); // streams that are away
let over = false;         // nothing new can come

function tell(name, problem) {
  if (problem) broken.add(name);
  else broken.delete(name);
  const text = problem || "";
  lost.hidden = broken.size === 0;
  if (text && lost.textContent !== text) lost.textContent = text;
  mark();
}

function mark() {
  const [tone, text] = broken.size ? ["lost", "not connected"] : over ? ["over", "ended"] : ["on", "live"];
  live.dataset.tone = tone;
  if (live.firstElementChild.textContent !== text) live.firstElementChild.textContent = text;
}

async function diagnose() {
  try {
    const answer = await fetch(location.pathname, { method: "HEAD", cache: "no-store" });
    if (answer.status === 401) return "This page’s key is no longer valid. Run zorilla web on the node’s machine and open the new address.";
    if (answer.status === 404) return "The node no longer knows this job.";
  } catch {
    // The usual case: nobody is there.
  }
  return "Connection to the node lost – trying again.";
}

// follow opens url and calls on[event](data) for each of its events. The event
// "end" ends it for good. It returns { open, close }.
export function follow(name, url, on) {
  let source = null, timer = 0, wait = 1000, ended = false;

  function open() {
    close();
    if (ended || document.hidden) return;
    source = new EventSource(url());
    source.onopen = () => { wait = 1000; tell(name, ""); };
    source.onerror = async () => {
      const mine = source;
      const problem = await diagnose();
      if (mine !== source || ended || mine?.readyState === EventSource.OPEN) return;
      tell(name, problem);
      if (mine?.readyState === EventSource.CLOSED) { // the browser gave up; we do not
        timer = setTimeout(open, wait);
        wait = Math.min(2 * wait, 10000);
      }
    };
    for (const event of Object.keys(on)) {
      source.addEventListener(event, (e) => on[event](JSON.parse(e.data)));
    }
    source.addEventListener("end", () => { ended = true; close(); });
  }

  function close() {
    clearTimeout(timer);
    source?.close();
    source = null;
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", (e) => { if (e.persisted) open(); });
  open();
  return { close, open() { ended = false; open(); } };
}

// watch keeps the page's data-live part as the node tells it.
export function watch(url) {
  const build = document.documentElement.dataset.build;
  const root = document.querySelector("[data-live]");
  startClock();
  follow("view", () => url, {
    view(data) {
      if (data.build !== build) { // the node came back with another version of this page
        location.reload();
        return;
      }
      bind(root, data);
      setClock(data.now);
      document.dispatchEvent(new CustomEvent("view", { detail: data }));
    },
    end() {
      over = true;
      mark();
    },
  });
}
