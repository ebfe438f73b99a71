// A form whose answer comes in parts: <form data-stream="/ask/run">. What is in #told-here and in the elements marked
// data-clear goes when a new answer begins. Only what the server rendered and escaped is put in as markup.
"use strict";
(() => {
  const put = (part) => {
    const place = document.getElementById(part.into);
    if (!place) return;
    if (part.how === "text") place.append(part.html);
    else if (part.how === "replace") place.innerHTML = part.html;
    else place.insertAdjacentHTML("beforeend", part.html);
    if (part.how !== "text" && window.htmx) window.htmx.process(place);
    if (part.how === "append") place.lastElementChild?.scrollIntoView({ block: "nearest" });
  };
  const say = (text) => {
    const place = document.getElementById("told-here");
    place.textContent = text;
    place.className = text ? "error" : "";
  };
  const read = async (response) => {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let held = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      held += value;
      for (let end = held.indexOf("\n\n"); end >= 0; end = held.indexOf("\n\n")) {
        const data = held.slice(0, end).split("\n").find((line) => line.startsWith("data: "));
        held = held.slice(end + 2);
        if (data) put(JSON.parse(data.slice(6)));
      }
    }
  };
  // A citation opens what its source says; a number, its passage.
  document.addEventListener("click", (event) => {
    const from = event.target.closest("[data-passage]");
    const named = event.target.closest("[data-opens]");
    const passage = from ? document.getElementById(from.dataset.passage) : null;
    const found = passage || (named ? document.getElementById(named.dataset.opens)?.querySelector("details") : null);
    if (found) { found.open = true; found.querySelector("summary").focus(); found.scrollIntoView({ block: "nearest" }); }
    const fill = event.target.closest("[data-fill]");
    if (fill) { const field = document.getElementById(fill.dataset.fill); field.value = fill.textContent; field.focus(); }
  });
  // An image is dropped, pasted or chosen, and shown small.
  const show = (drop) => {
    const file = document.getElementById(drop.dataset.drop).files[0];
    drop.querySelector("img")?.remove();
    if (!file) return;
    const image = document.createElement("img");
    image.alt = file.name;
    image.src = URL.createObjectURL(file);
    image.addEventListener("load", () => URL.revokeObjectURL(image.src), { once: true });
    drop.append(image);
  };
  const take = (drop, files) => {
    if (!files?.length) return;
    document.getElementById(drop.dataset.drop).files = files;
    show(drop);
  };
  for (const drop of document.querySelectorAll("[data-drop]")) {
    drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
    drop.addEventListener("dragleave", () => drop.classList.remove("over"));
    drop.addEventListener("drop", (event) => { event.preventDefault(); drop.classList.remove("over"); take(drop, event.dataTransfer.files); });
    drop.addEventListener("change", () => show(drop));
    document.addEventListener("paste", (event) => take(drop, event.clipboardData?.files));
  }
  let running = null;
  document.addEventListener("submit", async (event) => {
    const form = event.target.closest("form[data-stream]");
    if (!form) return;
    event.preventDefault();
    if (running) {
      running.abort();
      for (const one of document.querySelectorAll("[data-answer]:empty")) one.textContent = "Stopped: another question was asked.";
    }
    const mine = (running = new AbortController());
    document.querySelectorAll("[data-clear]").forEach((one) => { one.textContent = ""; });
    document.querySelectorAll("[data-until-asked]").forEach((one) => one.remove());
    say("");
    form.setAttribute("aria-busy", "true");
    const fields = new FormData(form, event.submitter);
    const multipart = form.enctype === "multipart/form-data";
    try {
      const response = await fetch(form.dataset.stream, {
        method: "POST",
        body: multipart ? fields : new URLSearchParams(fields),
        signal: mine.signal,
        headers: { "hx-request": "true" },
      });
      if (response.headers.get("content-type")?.startsWith("text/event-stream")) await read(response);
      else document.getElementById("told-here").innerHTML = await response.text();
    } catch (error) {
      if (error.name !== "AbortError") say("The server does not answer. Is it still running?");
    } finally {
      if (running === mine) {
        running = null;
        form.removeAttribute("aria-busy");
        const first = form.dataset.fresh === undefined ? null : form.querySelector("input[type=text]");
        if (first) { first.value = ""; first.focus(); }
      }
    }
  });
})();
