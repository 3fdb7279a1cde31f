/* Moves the progress bars of a page; tells the page when a job has ended ("once:ended"). */
"use strict";
(() => {
  if (window.onceProgress) return;
  window.onceProgress = true;
  const follow = (bar) => {
    const line = bar.querySelector("progress"), text = bar.querySelector("[data-once-message]");
    let pause = 1000, timer = 0, etag = "";
    const wait = () => { clearTimeout(timer); if (!document.hidden) timer = setTimeout(ask, pause); };
    const show = (now) => {
      bar.dataset.state = now.state;
      if (now.share === null) line.removeAttribute("value"); else line.value = now.share;
      const told = now.message || now.state;
      if (text && text.textContent !== told) text.textContent = told;
      bar.dispatchEvent(new CustomEvent(now.ended ? "once:ended" : "once:progress", { bubbles: true, detail: now }));
    };
    const ask = async () => {
      try {
        const answer = await fetch(bar.dataset.onceProgress, { headers: etag ? { "If-None-Match": etag } : {} });
        if (answer.status === 404) return;
        if (answer.status === 200) {
          etag = answer.headers.get("ETag") || "";
          const now = await answer.json();
          show(now);
          if (now.ended) return;
          pause = 1000;
        } else if (answer.status === 304) pause = Math.min(5000, pause * 1.3);
        else throw new Error(String(answer.status));
      } catch { pause = Math.min(30000, pause * 2); }
      wait();
    };
    if (["failed", "successful", "gone"].includes(bar.dataset.state)) return;
    document.addEventListener("visibilitychange", () => { if (document.hidden) clearTimeout(timer); else ask(); });
    wait();
  };
  document.querySelectorAll("[data-once-progress]").forEach(follow);
})();
