// What every page does by itself: times as one says them, keys to go from page to page, live lists, sorting, copying.
"use strict";
(() => {
  const pad = (n) => String(n).padStart(2, "0");
  const exactTime = (at) => `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())} ${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
  const ago = (ms) => {
    const s = Math.round((Date.now() - ms) / 1000);
    if (s < 0) return exactTime(new Date(ms));
    if (s < 5) return "just now";
    for (const [most, unit, name] of [[60, 1, "s"], [3600, 60, "min"], [86400, 3600, "h"], [2592000, 86400, "d"]]) {
      if (s < most) return `${Math.floor(s / unit)} ${name} ago`;
    }
    return exactTime(new Date(ms)).slice(0, 10);
  };
  // <time data-ms>: how long ago, with the exact time behind it; with data-exact, the time itself.
  const localTimes = (root) => {
    for (const one of root.querySelectorAll("time[data-ms]")) {
      const ms = Number(one.dataset.ms);
      const at = new Date(ms);
      one.dateTime = at.toISOString();
      one.title = `${exactTime(at)} (${at.toISOString()})`;
      const text = one.dataset.exact === undefined ? ago(ms) : exactTime(at).slice(0, one.dataset.exact === "minute" ? 16 : 19);
      if (one.textContent !== text) one.textContent = text;
    }
  };
  setInterval(() => { if (!document.hidden) localTimes(document); }, 15000);

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
  const openHelp = () => document.getElementById("help")?.showModal();
  // In a list, `j` and `k` go from row to row: to the link of each.
  const moveRow = (step) => {
    if (document.querySelector("[data-queue]")) return;
    const rows = [...document.querySelectorAll("tbody a.row-link")];
    const at = rows.indexOf(document.activeElement);
    rows[at < 0 ? 0 : Math.min(Math.max(at + step, 0), rows.length - 1)]?.focus();
  };
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
    } else if (event.key === "?") {
      event.preventDefault();
      openHelp();
    } else if (event.key === "j" || event.key === "k") {
      moveRow(event.key === "j" ? 1 : -1);
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
      list.dataset.state = "live";
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
      delete list.dataset.state;
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
      pause.textContent = paused ? "Resume" : "Pause";
      document.getElementById(pause.dataset.pause)?.dispatchEvent(new Event(paused ? "live:pause" : "live:resume"));
    }
    const reset = event.target.closest("[data-reset]");
    if (reset) {
      const form = document.getElementById(reset.dataset.reset);
      for (const one of form.elements) if (one.dataset.was) one.value = one.dataset.was;
      form.requestSubmit();
    }
    if (event.target.closest("[data-help]")) openHelp();
    const sorts = event.target.closest("button.sorts");
    if (sorts) sortBy(sorts.closest("th"));
    const button = event.target.closest("[data-copy]");
    if (button) copy(document.getElementById(button.dataset.copy), button);
  });
  // Browsers give pages a clipboard only on this machine or over TLS; elsewhere what is selected can be copied.
  const copy = async (from, button) => {
    const was = button.dataset.label ?? (button.dataset.label = button.textContent);
    let copied = true;
    try {
      await navigator.clipboard.writeText(from.textContent);
    } catch {
      getSelection().selectAllChildren(from);
      copied = document.execCommand("copy");
    }
    button.textContent = copied ? "Copied" : "Press Ctrl+C";
    setTimeout(() => { button.textContent = was; }, 1500);
  };

  // A table that is there in full is sorted in place: <table data-sorts>. Cells say what they are sorted by, or their text.
  const sortBy = (head) => {
    const body = head.closest("table").tBodies[0];
    const up = head.getAttribute("aria-sort") === "descending";
    for (const one of head.parentElement.cells) one.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const value = (row) => {
      const cell = row.cells[head.cellIndex];
      const said = cell?.dataset.by ?? cell?.textContent.trim() ?? "";
      return said !== "" && !Number.isNaN(Number(said)) ? Number(said) : said.toLowerCase();
    };
    const compare = (a, b) => (typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? 1 : -1);
    body.append(...[...body.rows].sort((a, b) => compare(value(a), value(b)) * (up ? 1 : -1)));
  };
  const makeSortable = () => {
    for (const head of document.querySelectorAll("table[data-sorts] thead th")) {
      if (!head.textContent.trim() || head.querySelector("button")) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sorts";
      button.textContent = head.textContent;
      head.replaceChildren(button);
    }
  };

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
    // On a narrow screen the links are a row that scrolls: where one is can be seen.
    document.querySelector("nav a[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
    markNext(0);
    localTimes(document);
    reachable();
    followAll();
    makeSortable();
  });
})();
