// What every page does: makes what scrolls sideways reachable by keyboard.
(function () {
  "use strict";
  const WIDE = ".scroll, .md-typeset__scrollwrap, .formula, .md-typeset pre > code";

  /** Gives everything that is wider than its place a tab stop and a name, and takes it back from what fits. */
  function scrollers() {
    document.querySelectorAll(WIDE).forEach((one) => {
      const wide = one.scrollWidth > one.clientWidth + 1;
      if (wide && !one.hasAttribute("tabindex")) {
        one.tabIndex = 0;
        one.setAttribute("role", "region");
        one.setAttribute("aria-label", one.querySelector("table") ? "Table" : one.matches("code") ? "Code" : "Figure");
        one.dataset.scroller = "";
      } else if (!wide && one.dataset.scroller !== undefined) {
        ["tabindex", "role", "aria-label", "data-scroller"].forEach((name) => one.removeAttribute(name));
      }
    });
  }

  globalThis.Book = { ...globalThis.Book, scrollers };
  window.addEventListener("resize", scrollers);
  document.querySelectorAll("details").forEach((one) => one.addEventListener("toggle", scrollers));
  window.addEventListener("load", scrollers);
})();
