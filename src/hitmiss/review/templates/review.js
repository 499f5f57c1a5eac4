"use strict";
(() => {
  const one = (selector) => document.querySelector(selector);
  const form = one("[data-judge]");
  const undo = one("[data-undo]");
  const media = one("[data-media]");
  const note = one("#note");

  // A token may come after the # of the address, which no server ever sees.
  const token = one("[data-token]");
  if (token && location.hash.startsWith("#token=")) {
    token.value = decodeURIComponent(location.hash.slice(7));
    history.replaceState(null, "", location.pathname);
  }

  // Keys wake up once the item is there: a key pressed twice must not judge an item that nobody has seen.
  let awake = false;
  const wake = () => setTimeout(() => { awake = true; document.documentElement.dataset.awake = "yes"; }, 250);
  const loaded = () => !media || media.complete || media.readyState >= 2;
  if (form) {
    if (loaded()) wake();
    else ["load", "loadeddata", "error"].forEach((event) => media.addEventListener(event, wake, { once: true }));
    if (media) media.addEventListener("error", () => media.closest(".stage").classList.add("broken"));
  } else wake();

  // Seconds of looking: only while the page can be seen.
  let seen = 0;
  let since = document.hidden ? null : performance.now();
  document.addEventListener("visibilitychange", () => {
    if (document.hidden && since !== null) { seen += performance.now() - since; since = null; }
    else if (!document.hidden && since === null) since = performance.now();
  });

  let sent = false;
  document.addEventListener("submit", (event) => {
    if (sent) { event.preventDefault(); return; }
    sent = true;
    const field = event.target.querySelector("[data-seconds]");
    if (field) field.value = ((seen + (since === null ? 0 : performance.now() - since)) / 1000).toFixed(3);
    document.documentElement.dataset.sent = "yes";
  });
  window.addEventListener("pageshow", () => { sent = false; delete document.documentElement.dataset.sent; });

  const zoom = one("[data-zoom]");
  // A picture that was made to fit is shown pixel by pixel; one that fits already grows by a whole factor, at least twice.
  const zoomed = () => {
    const full = zoom.classList.toggle("full");
    const image = zoom.querySelector("img");
    if (!image || !image.naturalWidth) return;
    const times = Math.min(zoom.clientWidth / image.naturalWidth, zoom.clientHeight / image.naturalHeight);
    if (full && times >= 1) image.width = image.naturalWidth * Math.max(2, Math.floor(times));
    else image.removeAttribute("width");
  };
  if (zoom) zoom.addEventListener("click", zoomed);
  const play = () => { if (media.paused) media.play(); else media.pause(); };

  const keys = {
    n: () => note && note.focus(),
    u: () => undo && undo.querySelector("button") && undo.requestSubmit(),
    z: () => zoom && zoomed(),
    " ": () => media && media.play && play(),
  };

  document.addEventListener("keydown", (event) => {
    if (event.repeat || event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    const at = event.target;
    const typing = at.matches("textarea, input");
    if (typing) { if (event.key === "Escape") at.blur(); return; }
    if (event.key === " " && at.matches("button, a, audio")) return;
    if (event.key === "Enter" && !at.matches("button, a, audio")) { const next = one("[data-next]"); if (next) next.click(); return; }
    if (!awake || sent) return;
    const key = event.key.toLowerCase();
    const button = form && form.querySelector(`[data-key="${CSS.escape(key)}"]`);
    if (button) { event.preventDefault(); form.requestSubmit(button); }
    else if (Object.hasOwn(keys, key)) { event.preventDefault(); keys[key](); }
  });
})();
