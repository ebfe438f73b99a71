// What every page does by itself: times in the reader's zone, keys to go from page to page, live lists.
"use strict";
(() => {
  const pad = (n) => String(n).padStart(2, "0");
  const localTimes = (root) => {
    for (const one of root.querySelectorAll("time[data-ms]")) {
      const at = new Date(Number(one.dataset.ms));
      one.title = at.toISOString();
      one.textContent = `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())} ${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
    }
  };

  // What scrolls is scrolled with the keyboard, too; what fits is not in the way of it.
  const reachable = () => {
    for (const one of document.querySelectorAll(".scroll, pre")) {
      if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
      else one.removeAttribute("tabindex");
    }
  };
  window.addEventListener("resize", reachable);
  document.addEventListener("toggle", reachable, true);

  const typing = (target) => target.closest("input, textarea, select, [contenteditable]") !== null;
  let goes = false;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (goes) {
      goes = false;
      const link = document.querySelector(`nav a[data-key="${CSS.escape(event.key)}"]`);
      if (link) { event.preventDefault(); link.click(); }
    } else if (event.key === "g") {
      goes = true;
      setTimeout(() => { goes = false; }, 1500);
    } else if (event.key === "/") {
      const search = document.querySelector("[data-search]");
      if (search) { event.preventDefault(); search.focus(); }
    }
  });

  // A list that grows: <tbody data-live="/decisions/live" data-most="200">. Each event is a rendered, escaped row.
  // While the page is hidden the connection is closed: a tab in the background costs nothing.
  const followed = new Map();
  // A connection that ends by itself is there again within this time; after it the page says that it is not live.
  const LATE_MS = 5000;
  const tell = (text) => {
    const told = document.getElementById("told");
    if (told) { told.className = text ? "error" : ""; told.textContent = text; }
  };
  const follow = (list) => {
    let source = null, late = null, again = null, lost = false;
    const back = () => {
      clearTimeout(late);
      late = null;
      if (lost) tell("");
      lost = false;
    };
    const waitFor = () => {
      late ??= setTimeout(() => { lost = true; tell("The server does not answer: the list is not live. Trying again…"); }, LATE_MS);
    };
    // A browser tries again by itself unless it was refused: then the server is asked why, and that is said.
    const refused = async (place) => {
      close();
      again = setTimeout(open, LATE_MS);
      const why = new AbortController();
      try {
        const response = await fetch(place, { headers: { "hx-request": "true" }, signal: why.signal });
        if (response.status === 401) clearTimeout(again);
        const told = document.getElementById("told");
        if (!response.ok && told) { clearTimeout(late); told.className = ""; told.innerHTML = await response.text(); lost = true; }
      } catch { waitFor(); } finally { why.abort(); }
    };
    const open = () => {
      clearTimeout(again);
      if (source || document.hidden || list.dataset.paused === "true") return;
      const place = new URL(list.dataset.live, location.href);
      if (list.dataset.last) place.searchParams.set("after", list.dataset.last);
      source = new EventSource(place);
      source.addEventListener("open", back);
      source.addEventListener("error", () => {
        if (source && source.readyState === EventSource.CLOSED) refused(place);
        else waitFor();
      });
      source.addEventListener("row", (event) => {
        const before = list.firstElementChild;
        list.insertAdjacentHTML("afterbegin", event.data);
        if (event.lastEventId) list.dataset.last = event.lastEventId;
        const most = Number(list.dataset.most || 200);
        while (list.children.length > most) list.lastElementChild.remove();
        for (let row = list.firstElementChild; row && row !== before; row = row.nextElementSibling) localTimes(row);
        const empty = document.querySelector("[data-until-live]");
        if (empty) empty.remove();
      });
    };
    const close = () => {
      clearTimeout(again);
      if (source) { source.close(); source = null; }
    };
    list.addEventListener("live:pause", () => { list.dataset.paused = "true"; close(); });
    list.addEventListener("live:resume", () => { list.dataset.paused = "false"; open(); });
    followed.set(list, { open, close });
    open();
  };
  const followAll = () => {
    for (const [list, one] of followed) if (!list.isConnected) { one.close(); followed.delete(list); }
    for (const list of document.querySelectorAll("[data-live]")) if (!followed.has(list)) follow(list);
    for (const button of document.querySelectorAll("[data-pause]")) {
      const list = document.getElementById(button.dataset.pause);
      button.hidden = !(list && list.dataset.live);
      button.setAttribute("aria-pressed", "false");
      button.textContent = "Pause";
    }
  };
  document.addEventListener("visibilitychange", () => {
    for (const one of followed.values()) if (document.hidden) one.close(); else one.open();
  });
  window.addEventListener("pagehide", () => { for (const one of followed.values()) one.close(); });
  window.addEventListener("pageshow", (event) => { if (event.persisted) for (const one of followed.values()) one.open(); });

  document.addEventListener("htmx:responseError", (event) => {
    const told = document.getElementById("told");
    if (told) told.innerHTML = event.detail.xhr.getResponseHeader("content-type")?.startsWith("text/html") ? event.detail.xhr.responseText : "";
  });
  document.addEventListener("htmx:sendError", () => {
    const told = document.getElementById("told");
    if (told) { told.className = "error"; told.textContent = "The server does not answer. Is it still running?"; }
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    localTimes(event.detail.target);
    reachable();
    followAll();
    const told = document.getElementById("told");
    if (told) { told.className = ""; told.textContent = ""; }
  });
  document.addEventListener("input", (event) => {
    const shown = event.target.matches("input[type=range]") ? event.target.nextElementSibling : null;
    if (shown && shown.matches("output")) shown.textContent = Number(event.target.value).toFixed(2);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.matches("textarea")) event.target.form?.requestSubmit();
  });
  document.addEventListener("submit", (event) => {
    const asks = event.target.dataset.confirm;
    if (asks && !window.confirm(asks)) event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    const pause = event.target.closest("[data-pause]");
    if (pause) {
      const paused = pause.getAttribute("aria-pressed") !== "true";
      pause.setAttribute("aria-pressed", String(paused));
      pause.textContent = paused ? "Go on" : "Pause";
      document.getElementById(pause.dataset.pause)?.dispatchEvent(new Event(paused ? "live:pause" : "live:resume"));
    }
    const reset = event.target.closest("[data-reset]");
    if (reset) {
      const form = document.getElementById(reset.dataset.reset);
      for (const one of form.elements) if (one.dataset.was) one.value = one.dataset.was;
      form.requestSubmit();
    }
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const from = document.getElementById(button.dataset.copy);
    navigator.clipboard?.writeText(from.textContent).then(() => { button.textContent = "copied"; });
  });
  // A queue of questions: one is marked, a digit answers it, `j` goes on.
  const queued = () => [...document.querySelectorAll("[data-queue] > li:not(.labelled)")];
  const markNext = (step) => {
    const all = queued();
    const at = all.findIndex((one) => one.classList.contains("now"));
    all.forEach((one) => one.classList.remove("now"));
    const next = all[at < 0 ? 0 : (at + step) % all.length];
    if (next) { next.classList.add("now"); next.scrollIntoView({ block: "nearest" }); }
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (!document.querySelector("[data-queue]")) return;
    if (event.key === "j") markNext(1);
    const button = document.querySelector(`[data-queue] > li.now [data-digit="${CSS.escape(event.key)}"]`);
    if (button) { markNext(1); button.click(); }
  });
  document.addEventListener("DOMContentLoaded", () => {
    markNext(0);
    localTimes(document);
    reachable();
    followAll();
  });
})();
