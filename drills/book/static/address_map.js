// Lesson 4's figure: s[S, N, H] as it lies in memory, and which elements one program reads.
(function () {
  "use strict";
  const { figure, make, select, slider } = Lab;
  const { addresses } = Maths;
  const range = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => from + i);

  figure("address_map", (place, start) => {
    const now = { ...start, order: "NH" };
    const cells = make("ol", { class: "cells" });
    const results = make("ol", { class: "cells" });
    const says = make("p", { class: "lab-says", role: "status" });
    const table = make("table");
    const host = make("div");
    const size = (name, label, most, least = 1) =>
      select(label, range(least, most).map((n) => [n, String(n)]), start[name], (value) => {
        now[name] = Number(value);
        now.program = Math.min(now.program, now.S * now.H - 1);
        programs();
        update();
      }).element;
    const wrong = make("input", {
      type: "checkbox",
      id: "address-map-order",
      onchange: () => {
        now.order = wrong.checked ? "HN" : "NH";
        update();
      },
    });

    place.append(
      make(
        "div",
        { class: "lab-fields" },
        size("S", "S, positions", 4),
        size("N", "N, states", 6, 0),
        size("H", "H, heads", 4),
        size("D", "D, columns", 8),
      ),
      host,
      make("p", { class: "lab-check" }, wrong, make("label", { for: "address-map-order" }, "Address it as [S, H, N] (a known mistake)")),
      says,
      make("p", { class: "lab-caption" }, "s[S, N, H] in memory"),
      cells,
      make("p", { class: "lab-caption" }, "the result s[S, H]"),
      results,
      make("div", { class: "scroll" }, table),
    );
    programs();
    update();

    function programs() {
      const most = now.S * now.H;
      const one = slider("Program", range(0, most - 1), now.program, (program) => {
        now.program = program;
        update();
      });
      host.replaceChildren(one.element);
    }

    function cell(number, words, kind, mark) {
      return make("li", { class: `cell cell-${kind}`, "data-mark": mark }, make("span", { class: "cell-number" }, String(number)), make("span", { class: "cell-words" }, words));
    }

    function update() {
      const { i, h, reads, writes } = addresses(now, now.program, now.order);
      const read = new Map(reads.map(({ s, n }) => [s, n]));
      cells.replaceChildren(
        ...range(0, now.S * now.N * now.H - 1).map((at) => {
          const [ci, cn, ch] = [Math.floor(at / (now.N * now.H)), Math.floor(at / now.H) % now.N, at % now.H];
          return cell(at, `i${ci} n${cn} h${ch}`, (ci + ch) % 2, read.has(at) ? "reads" : null);
        }),
      );
      results.replaceChildren(
        ...range(0, now.S * now.H - 1).map((at) => cell(at, `i${Math.floor(at / now.H)} h${at % now.H}`, (Math.floor(at / now.H) + (at % now.H)) % 2, at === writes.s ? "writes" : null)),
      );
      says.textContent = words(i, h, reads, writes);
      drawTable(i, h, reads, writes);
      globalThis.Book.scrollers();
    }

    function words(i, h, reads, writes) {
      const who = `Program ${now.program} is position ${i}, head ${h}.`;
      if (!reads.length) return `${who} With N = 0 it reads nothing and writes the empty state (0, −∞) to element ${writes.s}.`;
      const foreign = reads.filter(({ s }) => Math.floor(s / (now.N * now.H)) !== i || s % now.H !== h).length;
      const it = `It reads s at ${reads.map(({ s }) => s).join(", ")} and writes element ${writes.s}.`;
      if (now.order === "NH") return `${who} ${it}`;
      return `${who} ${it} ${foreign ? `${foreign} of these belong to another head.` : "With these sizes the mistake does not show."}`;
    }

    function drawTable(i, h, reads, writes) {
      const formula = now.order === "NH" ? `(${i} · ${now.N} + n) · ${now.H} + ${h}` : `(${i} · ${now.H} + ${h}) · ${now.N} + n`;
      const span = ({ from, to }) => (from === to ? String(from) : `${from} to ${to}`);
      const row = (name, s, v) => make("tr", {}, make("th", { scope: "row" }, name), make("td", { "data-out": "s" }, String(s)), make("td", { "data-out": "v" }, v));
      table.replaceChildren(
        make("thead", {}, make("tr", {}, ["state n", `s at ${formula}`, `v at ${now.D} · that`].map((text) => make("th", {}, text)))),
        make("tbody", {}, reads.map((one) => row(String(one.n), one.s, span(one))), row("result", writes.s, span(writes))),
      );
    }
  });
})();
