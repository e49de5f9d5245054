// Lesson 3's figure: two LSEs, the base they are in, the base they are merged in, and what the weights become.
(function () {
  "use strict";
  const { button, field, figure, make, radios } = Lab;
  const { BASES, mergeStates, readNumbers, show } = Maths;
  const SVG = "http://www.w3.org/2000/svg";

  function draw(tag, attributes, text) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    return element;
  }

  const percent = (share) => `${(100 * share).toFixed(2)} %`;

  figure("lse_bases", (place, start) => {
    const now = { a: start.lse[0], b: start.lse[1], given: "two", merged: "natural" };
    const ruler = draw("svg", { class: "ruler", width: "100%", height: 150, role: "img" });
    const table = make("table");
    const bars = make("div", { class: "shares", "aria-hidden": "true" });
    const says = make("p", { class: "lab-says", role: "status" });

    function lseField(label, key, value) {
      return field(label, show(value), (text) => {
        const read = readNumbers(text, { most: 1, name: "LSEs", infinite: true });
        if (read.problem) return read.problem;
        if (!read.numbers.length) return "Type a number, or −inf for a part without keys.";
        now[key] = read.numbers[0];
        update();
        return "";
      });
    }
    const a = lseField("LSE of A, natural", "a", now.a);
    const b = lseField("LSE of B, natural", "b", now.b);
    const preset = (one, other) => () => {
      a.set(show(one));
      b.set(show(other));
      now.a = one; // the field shows rounded digits; the figure computes with all of them
      now.b = other;
      update();
    };
    place.append(
      make("div", { class: "lab-fields" }, a.element, b.element),
      make(
        "p",
        { class: "lab-buttons" },
        button("The page's example", preset(...start.lse)),
        button("3,072 keys and 64", preset(...start.lopsided)),
        button("A empty", preset(-Infinity, start.lse[1])),
      ),
      make(
        "div",
        { class: "lab-fields" },
        radios("The numbers handed over are", [["two", "base 2"], ["natural", "natural"]], now.given, (base) => {
          now.given = base;
          update();
        }),
        radios("They are merged with", [["two", "exp2 and log2"], ["natural", "exp and log"]], now.merged, (base) => {
          now.merged = base;
          update();
        }),
      ),
      says,
      bars,
      make("div", { class: "scroll" }, table),
      ruler,
    );
    update();

    function update() {
      const state = (lse, o, base) => ({ s: BASES[base].of(lse), o });
      const pair = (base) => [state(now.a, start.o[0], base), state(now.b, start.o[1], base)];
      const right = mergeStates(...pair("natural"), "natural");
      const here = mergeStates(...pair(now.given), now.merged);
      drawTable(pair(now.given), right, here);
      drawBars(right, here);
      drawRuler(right.s);
      says.textContent = words(right, here);
      says.dataset.right = String(now.given === now.merged);
      globalThis.Book.scrollers();
    }

    function words(right, here) {
      if (right.s === -Infinity) return "Both parts are empty: every weight is 0, and so is the answer; its LSE is −∞.";
      if (now.given === now.merged) return "The base and the exponential agree: the weights are right.";
      const kind = now.given === "two" ? "exp on base-2 numbers pushes the weights apart" : "exp2 on natural numbers pulls the weights together";
      const shows = Math.abs(right.shareA - here.shareA) < 5e-7 ? " Here it does not show: a test with these numbers would pass." : "";
      return `Wrong: ${kind}.${shows}`;
    }

    function drawTable([sA, sB], right, here) {
      const base = now.given === "two" ? "base 2" : "natural";
      const row = (name, ...cells) => make("tr", {}, make("th", { scope: "row" }, name), cells.map(([text, key]) => make("td", { "data-out": key }, text)));
      const head = (cells) => make("thead", {}, make("tr", {}, cells.map((text) => make("th", {}, text))));
      table.replaceChildren(
        head(["", `handed over, ${base}`, "right share", "share here"]),
        make(
          "tbody",
          {},
          row("A", [show(sA.s), "a"], [percent(right.shareA), "right-a"], [percent(here.shareA), "here-a"]),
          row("B", [show(sB.s), "b"], [percent(right.shareB), "right-b"], [percent(here.shareB), "here-b"]),
          row("merged o", ["", null], [show(right.o), "right-o"], [show(here.o), "here-o"]),
          row("merged LSE", [`in ${base}`, null], [show(BASES[now.given].of(right.s)), "right-s"], [show(here.s), "here-s"]),
        ),
      );
    }

    function drawBars(right, here) {
      const bar = (name, { shareA, shareB }) =>
        make(
          "div",
          { class: "share" },
          make("span", { class: "share-name" }, name),
          make("span", { class: "share-bar" },
            make("span", { class: "share-a", style: `flex-grow:${shareA}` }, shareA > 0.12 ? "A" : ""),
            make("span", { class: "share-b", style: `flex-grow:${shareB}` }, shareB > 0.12 ? "B" : "")),
        );
      bars.replaceChildren(bar("right", right), bar("here", here));
    }

    function drawRuler(union) {
      const points = [["A", now.a], ["B", now.b], ["A and B", union]];
      const finite = points.map(([, x]) => x).filter(Number.isFinite);
      const low = Math.min(...finite, 0);
      const high = Math.max(...finite, low + 1);
      const at = (x) => (x === -Infinity ? 2 : 8 + (86 * (x - low)) / (high - low));
      const label = ([name, x]) => `${name}: ${show(x)} natural, ${show(BASES.two.of(x))} base 2`;
      ruler.setAttribute("aria-label", `A ruler. ${points.map(label).join(". ")}.`);
      ruler.replaceChildren(draw("line", { x1: "2%", x2: "98%", y1: 132, y2: 132, class: "ruler-line" }));
      points.forEach(([name, x], i) => {
        const y = 22 + 40 * i;
        const place = at(x);
        const left = place > 50;
        ruler.append(
          draw("line", { x1: `${place}%`, x2: `${place}%`, y1: y, y2: 132, class: "ruler-drop" }),
          draw("circle", { cx: `${place}%`, cy: y, r: 5, class: "ruler-dot" }),
          draw("text", { x: `${place}%`, y: y + 5, dx: left ? -12 : 12, "text-anchor": left ? "end" : "start" }, `${name} ${show(x)} | ${show(BASES.two.of(x))}`),
        );
      });
      ruler.append(draw("text", { x: "98%", y: 148, "text-anchor": "end", class: "ruler-note" }, "natural | base 2"));
    }
  });
})();
