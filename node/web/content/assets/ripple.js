// Plays the floods of a job again.

export function showRipple() {
  const picture = document.querySelector(".ripple");
  document.getElementById("replay").addEventListener("click", () => {
    picture.classList.remove("play");
    picture.getBoundingClientRect(); // so that the browser notices
    picture.classList.add("play");
  });
}
