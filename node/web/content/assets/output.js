// The output of a job, line by line, newest last. It holds a bounded tail.

import { follow } from "./live.js";

const maxLines = 2000;
const maxText = 1 << 20;
const maxLine = 8192;

const log = document.getElementById("log");
const state = document.getElementById("logstate");
const newest = document.getElementById("newest");
const rank = document.getElementById("rank");
const stream = document.getElementById("stream");
const find = document.getElementById("find");
const wrap = document.getElementById("wrap");
const save = document.getElementById("savelog");

let open = new Map(); // "rank.attempt.stream" -> its unfinished line
let text = 0;         // characters in all lines
let left = 0;         // bytes left out
let stick = true;     // the end is what is looked at
let said = "";        // what is told below

function clear() {
  log.replaceChildren();
  open = new Map();
  text = left = 0;
  stick = true;
}

function line(piece) {
  const row = document.createElement("div");
  row.className = piece.err ? "row err" : "row";
  const name = document.createElement("span");
  name.className = "rank";
  name.dataset.hue = piece.rank % 8;
  name.textContent = piece.attempt > 1 ? `${piece.rank}·${piece.attempt}` : `${piece.rank}`;
  const body = document.createElement("span");
  body.className = "body";
  row.append(name, body);
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
    sift(row);
    text += part.length + 1;
    if (last) open.set(key, row);
    else open.delete(key);
  });
}

// sift hides a line that does not hold what is searched for.
function sift(row) {
  row.hidden = find.value !== "" && !row.lastChild.textContent.toLowerCase().includes(find.value.toLowerCase());
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

const atEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < 4;

// settle keeps the end in sight, if it was, and tells what is shown. A box in which there is
// nothing to see is not there.
function settle() {
  const shown = log.querySelectorAll(".row:not([hidden])").length;
  log.hidden = shown === 0;
  if (stick) log.scrollTop = log.scrollHeight;
  newest.hidden = log.hidden || atEnd();
  let line = said;
  if (find.value !== "") line = `${shown.toLocaleString("en")} of ${log.childElementCount.toLocaleString("en")} lines have it. ${line}`;
  if (left > 0) line += ` About ${Math.ceil(left / 1024).toLocaleString("en")} KiB before this are not shown: Download has all.`;
  state.textContent = line;
}

function show(batch) {
  if (batch.skipped > 0) {
    left += batch.skipped;
    open = new Map();
  }
  const rows = document.createDocumentFragment();
  for (const piece of batch.pieces) add(rows, piece);
  log.append(rows);
  trim();
  said = "Following.";
  settle();
}

// query is which output is wanted.
function query() {
  const q = new URLSearchParams();
  if (rank.value !== "") q.set("rank", Number(rank.value));
  if (stream.value !== "") q.set("stream", stream.value);
  return q.size ? `?${q}` : "";
}

export function showOutput(job) {
  const wanted = new URLSearchParams(location.search);
  const number = wanted.get("rank") ?? "";
  rank.value = /^\d{1,10}$/.test(number) ? number : "";
  stream.value = /^std(out|err)$/.test(wanted.get("stream")) ? wanted.get("stream") : "";
  const events = follow("output", () => `${job}/output${query()}`, {
    start() { // also after a break: the node sends its tail again
      clear();
      said = "No output so far.";
      settle();
    },
    output: show,
    end(how) {
      if (how === "gone") said = "The node no longer has this output.";
      else said = log.childElementCount ? "End of the output." : "There was no output.";
      settle();
    },
  });
  const choose = () => {
    if (!rank.checkValidity()) return;
    history.replaceState(null, "", query() || location.pathname);
    save.setAttribute("href", `${job}/log${query()}`);
    events.open();
  };
  save.setAttribute("href", `${job}/log${query()}`);
  rank.addEventListener("change", choose);
  stream.addEventListener("change", choose);
  find.addEventListener("input", () => {
    for (const row of log.children) sift(row);
    settle();
  });
  wrap.addEventListener("change", () => {
    log.classList.toggle("long", !wrap.checked);
    settle();
  });
  document.addEventListener("click", (e) => {
    const link = e.target.closest?.("a[data-rank]");
    if (!link || e.metaKey || e.ctrlKey || e.shiftKey) return;
    e.preventDefault();
    rank.value = link.dataset.rank;
    choose();
    log.focus();
  });
  newest.addEventListener("click", () => {
    stick = true;
    settle();
  });
  log.addEventListener("scroll", () => {
    stick = atEnd();
    newest.hidden = stick;
  });
  new ResizeObserver(settle).observe(log);
}
