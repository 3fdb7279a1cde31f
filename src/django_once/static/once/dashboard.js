/* Keeps a page of the dashboard fresh: asks for its live part, and replaces it when it changed. */
"use strict";
(() => {
  document.querySelector(".once-tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  const goOn = document.querySelector("form[data-once-go-on]");
  if (goOn) { goOn.requestSubmit(); return; }
  const region = document.getElementById("once-live");
  if (!region) return;
  const every = Number(region.dataset.every) * 1000;
  const control = document.getElementById("once-switch");
  const button = control.querySelector("button");
  const word = control.querySelector(".once-live-word");
  let etag = region.dataset.etag, timer = 0, failures = 0, asked = null;
  let skew = Number(region.dataset.now) * 1000 - Date.now();
  let isOn = sessionStorage.getItem("once-live") !== "off";

  const length = (seconds) => {
    for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "m"]])
      if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
    return `${Math.floor(Math.max(0, seconds))} s`;
  };
  const tick = () => {
    for (const one of region.querySelectorAll("time[data-ago], time[data-since]")) {
      const seconds = (Date.now() + skew - Date.parse(one.dateTime)) / 1000;
      const told = "since" in one.dataset ? length(seconds)
        : seconds >= 0 ? `${length(seconds)} ago` : `in ${length(-seconds)}`;
      if (one.textContent !== told) one.textContent = told;
    }
  };
  /* Whoever types, has chosen rows or marked text is not disturbed. */
  const isBusy = () => {
    const at = document.activeElement;
    if (region.contains(at) && at.matches("input:not([type=checkbox]), select, textarea")) return true;
    if (region.querySelector("input[type=checkbox]:checked")) return true;
    const marked = document.getSelection();
    return Boolean(marked && !marked.isCollapsed && region.contains(marked.anchorNode));
  };
  const path = (one) => {
    const all = [...region.querySelectorAll("a, button, summary, [tabindex]")];
    return region.contains(one) ? all.indexOf(one) : -1;
  };
  const replace = (html) => {
    const opened = new Map([...region.querySelectorAll("details[id]")].map((one) => [one.id, one.open]));
    const focus = path(document.activeElement);
    const scrolled = [...region.querySelectorAll(".once-scroll")].map((one) => one.scrollLeft);
    region.innerHTML = html;
    for (const one of region.querySelectorAll("details[id]"))
      if (opened.has(one.id)) one.open = opened.get(one.id);
    region.querySelectorAll(".once-scroll").forEach((one, n) => { one.scrollLeft = scrolled[n] || 0; });
    if (focus >= 0)
      region.querySelectorAll("a, button, summary, [tabindex]")[focus]?.focus({ preventScroll: true });
    tick();
  };
  const ask = async () => {
    if (isBusy()) return;
    asked = new AbortController();
    const answer = await fetch(location.href, {
      headers: { "X-Once-Live": "1", "If-None-Match": etag }, credentials: "same-origin",
      redirect: "error", signal: asked.signal,
    });
    if (answer.status !== 200 && answer.status !== 304) throw new Error(String(answer.status));
    const now = Number(answer.headers.get("X-Once-Now"));
    if (now) skew = now * 1000 - Date.now();
    if (answer.status === 200) {
      const html = await answer.text();
      if (isBusy()) return;
      etag = answer.headers.get("ETag");
      replace(html);
    }
    failures = 0;
  };
  const show = () => {
    button.setAttribute("aria-pressed", String(isOn));
    word.textContent = !isOn ? "Paused" : failures ? "No answer, trying again" : "Live";
  };
  const wait = () => {
    clearTimeout(timer);
    if (isOn && !document.hidden) timer = setTimeout(turn, every * Math.min(20, 2 ** failures));
  };
  const turn = async () => {
    try { await ask(); } catch (error) { if (error.name !== "AbortError") failures += 1; }
    show();
    wait();
  };
  button.addEventListener("click", () => {
    isOn = !isOn;
    sessionStorage.setItem("once-live", isOn ? "on" : "off");
    if (isOn) turn(); else { clearTimeout(timer); asked?.abort(); }
    show();
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { clearTimeout(timer); asked?.abort(); } else if (isOn) turn();
  });
  control.hidden = false;
  setInterval(tick, 1000);
  show();
  wait();
})();
