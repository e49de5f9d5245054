// Draws the Mermaid sources of a page, again whenever light turns to dark. Where it cannot, the source stays readable.
(function () {
  "use strict";
  const figures = [...document.querySelectorAll("[data-diagram]")];
  const sources = figures.map((figure) => figure.querySelector("code").textContent);
  let drawn = "";
  let running = Promise.resolve();

  const scheme = () => (document.body.dataset.mdColorScheme === "slate" ? "dark" : "light");

  function colors() {
    const style = getComputedStyle(document.body);
    const one = (name) => style.getPropertyValue(name).trim();
    return {
      darkMode: scheme() === "dark",
      fontFamily: "inherit",
      fontSize: "15px",
      background: one("--book-paper"),
      primaryColor: one("--book-box"),
      primaryTextColor: one("--book-ink"),
      primaryBorderColor: one("--book-accent"),
      lineColor: one("--book-line"),
      secondaryColor: one("--book-paper"),
      tertiaryColor: one("--book-paper"),
      clusterBkg: one("--book-paper"),
      clusterBorder: one("--book-faint"),
      titleColor: one("--book-ink"),
      edgeLabelBackground: one("--book-paper"),
    };
  }

  async function draw() {
    if (drawn === scheme()) return;
    drawn = scheme();
    mermaid.initialize({
      startOnLoad: false,
      securityLevel: "strict",
      theme: "base",
      themeVariables: colors(),
      flowchart: { useMaxWidth: true, curve: "basis" },
    });
    for (const [at, figure] of figures.entries()) {
      try {
        const { svg } = await mermaid.render(`diagram-${at}-${drawn}`, sources[at]);
        show(figure, svg);
      } catch (error) {
        console.warn(`A diagram could not be drawn: ${error.message}`);
      }
    }
  }

  function show(figure, svg) {
    let drawing = figure.querySelector(".drawing");
    if (!drawing) {
      drawing = document.createElement("div");
      drawing.className = "drawing scroll";
      figure.append(drawing);
    }
    drawing.innerHTML = svg;
    const picture = drawing.querySelector("svg");
    const natural = picture.viewBox.baseVal.width;
    picture.style.maxWidth = `${natural}px`;
    picture.style.minWidth = `${Math.min(natural, 560)}px`;
    picture.setAttribute("aria-label", `Diagram of ${figure.dataset.diagram}`);
    figure.querySelector("pre").hidden = true;
    globalThis.Book.scrollers();
  }

  const later = () => {
    running = running.then(draw);
  };
  new MutationObserver(later).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
  later();
})();
