// Keeps the page up to date and answers two keys. Everything works without it: each page is whole as it is served.
"use strict";
(() => {
  const live = document.getElementById("live");
  const button = document.getElementById("updates");
  let on = true;

  async function update() {
    if (!live || !on || document.hidden) return;
    const address = new URL(location.href);
    address.searchParams.set("part", "1");
    try {
      const answer = await fetch(address, { cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      const text = await answer.text();
      if (!on || text === live.dataset.last) return;
      const focused = document.activeElement && live.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      const scrolled = [...live.querySelectorAll(".scroll")].map((box) => box.scrollLeft);
      live.innerHTML = text; // made by the server, where every text is escaped; the policy of the page runs no script in it
      live.dataset.last = text;
      live.querySelectorAll(".scroll").forEach((box, n) => { box.scrollLeft = scrolled[n] || 0; });
      if (focused) { const again = [...live.querySelectorAll("a")].find((a) => a.getAttribute("href") === focused); if (again) again.focus(); }
      document.body.classList.remove("stale");
    } catch (_) {
      document.body.classList.add("stale"); // the server is gone: the page stays as it was, and says so below
      if (button) button.textContent = "No answer; trying again";
    }
    if (button && on && !document.body.classList.contains("stale")) button.textContent = "Stop updates";
  }

  if (button) {
    button.hidden = !live;
    button.addEventListener("click", () => {
      on = !on;
      button.setAttribute("aria-pressed", String(!on));
      button.textContent = on ? "Stop updates" : "Updates stopped";
      if (on) update();
    });
  }
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
      const search = document.querySelector("input[type=search]");
      if (search) { event.preventDefault(); search.focus(); search.select(); } else { location.href = "/hosts"; }
    }
    if (event.key === "Escape" && typing) event.target.blur();
  });
  if (live) setInterval(update, 2000);
})();
