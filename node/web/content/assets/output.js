// The output of a job, line by line, newest last. It holds a bounded tail.

import { follow } from "./live.js";

const maxLines = 2000;
const maxText = 1 << 20;
const maxLine = 8192;

const log = document.getElementById("log");
const state = document.getElementById("logstate");
const newest = document.getElementById("newest");
const input = document.getElementById("rank");

let open = new Map(); // "rank.attempt.stream" -> its unfinished line
let text = 0;         // characters in all lines
let left = 0;         // bytes left out

function clear() {
  log.replaceChildren();
  open = new Map();
  text = left = 0;
}

function line(piece) {
  const row = document.createElement("div");
  row.className = piece.err ? "row err" : "row";
  const rank = document.createElement("span");
  rank.className = "rank";
  rank.dataset.hue = piece.rank % 8;
  rank.textContent = piece.attempt > 1 ? `${piece.rank}·${piece.attempt}` : `${piece.rank}`;
  const body = document.createElement("span");
  body.className = "body";
  row.append(rank, body);
  return row;
}

function add(target, piece) {
  const key = `${piece.rank}.${piece.attempt}.${piece.err}`;
  const parts = piece.text.split("\n");
  parts.forEach((part, i) => {
    const last = i === parts.length - 1;
    if (last && part === "") return;
    let row = open.get(key);
    if (!row || row.lastChild.textContent.length > maxLine) {
      row = line(piece);
      target.append(row);
    }
    row.lastChild.textContent += part;
    text += part.length + 1;
    if (last) open.set(key, row);
    else open.delete(key);
  });
}

function trim() {
  while (log.childElementCount > maxLines || (text > maxText && log.childElementCount > 1)) {
    const row = log.firstElementChild;
    const size = row.lastChild.textContent.length + 1;
    text -= size;
    left += size;
    for (const [key, value] of open) if (value === row) open.delete(key);
    row.remove();
  }
}

const atEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < 24;

function tellLeft(more) {
  state.textContent = left > 0 ? `${more} About ${Math.ceil(left / 1024).toLocaleString("en")} KiB before this are not shown; zorilla logs has all.` : more;
}

function show(batch) {
  const stick = atEnd();
  if (batch.skipped > 0) {
    left += batch.skipped;
    open = new Map();
  }
  const rows = document.createDocumentFragment();
  for (const piece of batch.pieces) add(rows, piece);
  log.append(rows);
  trim();
  if (stick) log.scrollTop = log.scrollHeight;
  newest.hidden = atEnd();
  tellLeft("Following.");
}

export function showOutput(url) {
  const wanted = new URLSearchParams(location.search).get("rank") ?? "";
  input.value = /^\d{1,10}$/.test(wanted) ? wanted : "";
  const address = () => (input.value === "" ? url : `${url}?rank=${Number(input.value)}`);
  const stream = follow("output", address, {
    start() { // also after a break: the node sends its tail again
      clear();
      state.textContent = "Waiting for output…";
    },
    output: show,
    end(how) {
      if (how === "gone") state.textContent = "The node no longer has this output.";
      else tellLeft(log.childElementCount ? "End of the output." : "There was no output.");
    },
  });
  const choose = () => {
    if (!input.checkValidity()) return;
    history.replaceState(null, "", input.value === "" ? location.pathname : `?rank=${Number(input.value)}`);
    stream.open();
  };
  input.addEventListener("change", choose);
  document.addEventListener("click", (e) => {
    const link = e.target.closest?.("a[data-rank]");
    if (!link || e.metaKey || e.ctrlKey || e.shiftKey) return;
    e.preventDefault();
    input.value = link.dataset.rank;
    choose();
    log.focus();
  });
  newest.addEventListener("click", () => { log.scrollTop = log.scrollHeight; });
  log.addEventListener("scroll", () => { newest.hidden = atEnd(); });
}
