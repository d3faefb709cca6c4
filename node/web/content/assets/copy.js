// Copies the command beside a button. Where the browser has no clipboard for the page it is
// marked, so that a key copies it.

export function copies() {
  document.addEventListener("click", async (e) => {
    const button = e.target.closest?.("button.copy");
    if (!button) return;
    const code = button.parentElement.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = "Marked";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
}
