// Lesson 5's figure: what one decoding step reads, with and without cascade, as B, P and U move.
(function () {
  "use strict";
  const { button, figure, make, select, slider } = Lab;
  const { cascadeBytes, showBytes } = Maths;
  const count = (n) => n.toLocaleString("en-US");
  const powers = (to) => [0, ...Array.from({ length: Math.log2(to) + 1 }, (_, i) => 2 ** i)];

  figure("cascade_bytes", (place, start) => {
    const now = { ...start };
    const bars = make("div", { class: "amounts", "aria-hidden": "true" });
    const says = make("p", { class: "lab-says", role: "status" });
    const table = make("table");
    const one = (name, label, most) =>
      slider(label, powers(most), start[name], (value) => {
        now[name] = value;
        update();
      });
    const sliders = { B: one("B", "B, requests:", 1024), P: one("P", "P, shared keys:", 131072), U: one("U", "U, own keys of each:", 16384) };
    const heads = select("Hkv, key/value heads", [1, 2, 4, 8, 16, 32].map((n) => [n, String(n)]), start.Hkv, (value) => {
      now.Hkv = Number(value);
      update();
    });
    const group = select("G, query heads for each", [1, 2, 4, 8, 16].map((n) => [n, String(n)]), start.G, (value) => {
      now.G = Number(value);
      update();
    });
    const to = (values) => () => Object.entries(values).forEach(([name, value]) => sliders[name].set(value));

    place.append(
      make("div", { class: "lab-fields" }, Object.values(sliders).map((s) => s.element), heads.element, group.element),
      make(
        "p",
        { class: "lab-buttons" },
        button("The page's example", to({ B: start.B, P: start.P, U: start.U })),
        button("One request", to({ B: 1 })),
        button("Nothing shared", to({ P: 0 })),
      ),
      bars,
      says,
      make("div", { class: "scroll" }, table),
    );
    update();

    function update() {
      const { keys, bytes, times } = cascadeBytes(now);
      const most = Math.max(bytes.without, bytes.with, 1);
      const bar = (name, size) =>
        make(
          "div",
          { class: "amount" },
          make("span", { class: "amount-name" }, name),
          make("span", { class: "amount-bar" }, make("span", { style: `width:${(100 * size) / most}%` })),
          make("span", { class: "amount-size" }, showBytes(size)),
        );
      bars.replaceChildren(bar("without", bytes.without), bar("with", bytes.with));
      const row = (name, formula, number, size, key) =>
        make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, formula), make("td", { "data-out": `keys-${key}` }, count(number)), make("td", { "data-out": `bytes-${key}` }, showBytes(size)));
      table.replaceChildren(
        make("thead", {}, make("tr", {}, ["", "keys read", "that is", "bytes"].map((text) => make("th", {}, text)))),
        make(
          "tbody",
          {},
          row("without cascade", `${count(now.B)} · (${count(now.P)} + ${count(now.U)})`, keys.without, bytes.without, "without"),
          row("with cascade", `${count(now.P)} + ${count(now.B)} · ${count(now.U)}`, keys.with, bytes.with, "with"),
        ),
      );
      says.textContent = words(keys, times);
    }

    function words(keys, times) {
      if (keys.without === 0) return "Nothing is read: there are no requests, or no keys.";
      const gain = times > 1.0005 ? `Cascade reads ${times >= 10 ? times.toFixed(1) : times.toFixed(2)} times fewer keys.` : "Cascade saves nothing here, and still costs a merge.";
      if (now.P === 0) return gain;
      const intensity = now.B * now.G;
      const bound = intensity <= start.balance
        ? `up to ${start.balance} an H200 waits for memory`
        : `beyond ${start.balance} an H200 is bound by its matrix units`;
      return `${gain} The shared side does B · G = ${count(intensity)} operations a byte: ${bound}.`;
    }
  });
})();
