// Swaps the main part of the page when the server sends another, and says when it does not hear from the server.
"use strict"; (() => {
  const SILENCE = 15000, RETRY = 1000;
  const lost = document.getElementById("lost"), news = document.getElementById("news");
  const main = () => document.getElementById("main");
  let stream = null, timer = 0, heard = 0, pressed = false, waiting = null;
  const ages = () => {
    for (const time of document.querySelectorAll("time[datetime]")) {
      const s = Math.max(0, Math.round((Date.now() - Date.parse(time.dateTime)) / 1000));
      if (!time.title) time.title = time.textContent;
      const age = s < 120 ? `${s}s` : s < 7200 ? `${Math.floor(s / 60)}m`
        : s < 172800 ? `${Math.floor(s / 3600)}h` : `${Math.floor(s / 86400)}d`;
      if (time.textContent !== `${age} ago`) time.textContent = `${age} ago`;
    }
  };
  // An element without id is found again by its link, label or kind, and by its place among those that are like it.
  const again = (next, one) => {
    const name = ["id", "href", "aria-label"].find((name) => one.getAttribute(name));
    const like = name ? `[${name}="${CSS.escape(one.getAttribute(name))}"]` : one.localName;
    const all = next.querySelectorAll(like);
    return all[[...main().querySelectorAll(like)].indexOf(one)] || all[0];
  };
  const swap = (markup) => {
    const next = new DOMParser().parseFromString(markup, "text/html").getElementById("main");
    const old = main(), active = document.activeElement, inside = old.contains(active) && active !== old;
    for (const field of old.querySelectorAll("input[id], select[id], textarea[id]")) {
      const same = again(next, field);
      if (same) same.value = field.value;
    }
    const lists = next.querySelectorAll("details");
    old.querySelectorAll("details").forEach((one, at) => {
      if (lists[at] && lists[at].textContent === one.textContent) lists[at].open = one.open;
    });
    // What was read out already is not read out again.
    for (const one of next.querySelectorAll("[id][role=alert], [id][role=status]"))
      if (document.getElementById(one.id)?.textContent === one.textContent) one.removeAttribute("role");
    const wide = [...old.querySelectorAll(".wide")].filter((one) => one.scrollLeft);
    const range = active.setSelectionRange ? [active.selectionStart, active.selectionEnd] : null;
    const target = (inside && again(next, active)) || next;
    if (next.dataset.news !== old.dataset.news) news.textContent = next.dataset.news;
    old.replaceWith(next);
    ages();
    for (const one of wide) { const same = again(next, one); if (same) same.scrollLeft = one.scrollLeft; }
    if (!inside && active !== old) return;
    target.focus({ preventScroll: true });
    if (range && target.setSelectionRange) target.setSelectionRange(...range);
  };
  const take = (markup) => { if (pressed) waiting = markup; else swap(markup); };
  const stop = () => { clearTimeout(timer); if (stream) stream.close(); stream = null; };
  const hear = () => { heard = Date.now(); lost.hidden = true; lost.textContent = ""; };
  const lose = () => {
    stop();
    const words = `The connection is lost: what is shown is of ${new Date().toLocaleTimeString()}. Trying again.`;
    if (lost.hidden) Object.assign(lost, { hidden: false, textContent: words });
    timer = setTimeout(start, RETRY);
  };
  const start = () => {
    stop();
    if (document.hidden) return;
    const url = new URL(location.href.split("#")[0]);
    url.searchParams.set("live", main().dataset.seen);
    url.searchParams.set("plan", main().dataset.plan);
    heard = Date.now();
    stream = new EventSource(url);
    stream.onerror = lose;
    stream.addEventListener("beat", hear);
    stream.addEventListener("main", (event) => { hear(); take(JSON.parse(event.data)); });
  };
  // Nothing moves under a finger.
  addEventListener("pointerdown", () => { pressed = true; });
  const release = () => setTimeout(() => { pressed = false; if (waiting) { swap(waiting); waiting = null; } }, 100);
  ["pointerup", "pointercancel", "blur"].forEach((name) => addEventListener(name, release));
  setInterval(() => { ages(); if (stream && Date.now() - heard > SILENCE) lose(); }, 1000);
  ages();
  if (["error", "reasons"].includes(main().dataset.page)) return;
  start();
  document.addEventListener("visibilitychange", () => { if (document.hidden) stop(); else start(); });
  addEventListener("pagehide", stop);
  addEventListener("pageshow", (event) => { if (event.persisted) start(); });
})();
