// Buttons and forms that change something. The key for that comes once, in a cookie of a minute, and is
// kept where only this origin can read it: cookies go to all ports of a host.

const owner = "owner" in document.documentElement.dataset;
const toast = document.getElementById("toast");
let timer = 0;

function takeKey() {
  const name = `zorilla-${location.port || "80"}-key`;
  for (const pair of document.cookie.split("; ")) {
    const [key, value] = pair.split("=");
    if (key !== name || !value) continue;
    localStorage.setItem("key", value);
    document.cookie = `${name}=; Max-Age=0; Path=/; SameSite=Strict`;
  }
  return localStorage.getItem("key");
}

function tell(text, href) {
  clearTimeout(timer);
  toast.replaceChildren(text);
  if (/^\/jobs\/[a-z0-9@]+$/.test(href)) {
    const link = document.createElement("a");
    link.setAttribute("href", href);
    link.textContent = "Show it";
    toast.append(" ", link);
  }
  toast.hidden = false;
  timer = setTimeout(() => { toast.hidden = true; }, 15000);
}

async function act(button, what, body) {
  const path = what.startsWith("/") ? what : `${location.pathname.replace(/\/$/, "")}/${what}`;
  button.disabled = true;
  try {
    const answer = await fetch(path, { method: "POST", headers: { "Zorilla-Key": localStorage.getItem("key") }, body });
    const text = await answer.text();
    if (answer.headers.get("Content-Type") === "application/json") {
      const said = JSON.parse(text);
      tell(said.text, said.href);
    } else tell(text);
  } catch {
    tell("The node does not answer: nothing may have been done.");
  }
  button.disabled = false;
}

// sure asks once more for what cannot be taken back: the same button, within four seconds.
function sure(button) {
  if (!button.dataset.sure || button.dataset.asked) return true;
  const text = button.textContent;
  button.dataset.asked = "yes";
  button.textContent = button.dataset.sure;
  setTimeout(() => {
    delete button.dataset.asked;
    button.textContent = text;
  }, 4000);
  return false;
}

export function actions() {
  if (!owner || !takeKey()) return;
  document.documentElement.dataset.acts = "";
  document.addEventListener("click", (e) => {
    const button = e.target.closest?.("button[data-act]");
    if (button && sure(button)) act(button, button.dataset.act);
  });
  document.addEventListener("submit", (e) => {
    const form = e.target.closest("form[data-act]");
    if (!form) return;
    e.preventDefault();
    act(form.querySelector("[type=submit]"), form.dataset.act, new URLSearchParams(new FormData(form)));
  });
}
