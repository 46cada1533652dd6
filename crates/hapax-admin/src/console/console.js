// Switches between light and dark, and refreshes the overview.
"use strict";

const REFRESH_MS = 2000;
const root = document.documentElement;

// Before the first paint, so that the page does not flash in the other colours.
const chosen = localStorage.getItem("theme");
if (chosen) root.dataset.theme = chosen;

document.addEventListener("DOMContentLoaded", () => {
  document.getElementById("theme").addEventListener("click", switchTheme);
  const live = document.getElementById("live");
  if (live) refreshRegularly(live);
});

function switchTheme() {
  const isDark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
}

function refreshRegularly(live) {
  const pause = document.getElementById("pause");
  const state = document.getElementById("live-state");
  let isPaused = false;
  const say = (text) => { if (state.textContent !== text) state.textContent = text; };

  pause.addEventListener("click", () => {
    isPaused = !isPaused;
    pause.setAttribute("aria-pressed", String(isPaused));
    pause.textContent = isPaused ? "Resume" : "Pause";
    say(isPaused ? "Paused" : "Live");
  });

  const refresh = async () => {
    // A refresh must not remove the keyboard focus.
    const isBusy = isPaused || document.hidden || live.contains(document.activeElement);
    if (!isBusy) {
      try {
        const answer = await fetch(live.dataset.refresh, { credentials: "same-origin" });
        if (answer.redirected) location.reload();
        if (!answer.ok) throw new Error(String(answer.status));
        live.innerHTML = await answer.text();
        if (!isPaused) say("Live");
      } catch {
        say("No connection");
      }
    }
    setTimeout(refresh, REFRESH_MS);
  };
  setTimeout(refresh, REFRESH_MS);
}
