// Lesson 1's figure: the online softmax walks over scores that the reader edits, a block at a time.
(function () {
  "use strict";
  const { button, field, figure, make, select } = Lab;
  const { attention, onlineSteps, readNumbers, show } = Maths;
  const MOST = 12;

  figure("online_softmax", (place, start) => {
    const now = { ...start, at: 0, steps: [] };
    const bars = make("ol", { class: "bars" });
    const says = make("p", { class: "lab-says", role: "status" });
    const table = make("table");
    const back = button("Back", () => go(now.at - 1));
    const next = button("Next block", () => go(now.at + 1));
    const last = button("To the end", () => go(now.steps.length));
    const again = button("The page's example", () => {
      block.list.value = String(start.block);
      now.block = start.block;
      values.set(start.values.join(", "));
      scores.set(start.scores.join(", "));
    });

    const scores = field("Scores", start.scores.map(show).join(", "), (text) => {
      const read = readNumbers(text, { most: MOST, name: "scores", infinite: true });
      if (read.problem) return read.problem;
      now.scores = read.numbers;
      restart();
      return "";
    });
    const values = field("Values, one a score", start.values.map(show).join(", "), (text) => {
      const read = readNumbers(text, { most: MOST, name: "values" });
      if (read.problem) return read.problem;
      now.values = read.numbers;
      restart();
      return "";
    });
    const block = select("Block", [1, 2, 4, 8].map((n) => [n, String(n)]), start.block, (size) => {
      now.block = Number(size);
      restart();
    });

    place.append(
      make("div", { class: "lab-fields" }, scores.element, values.element, block.element),
      make("div", { class: "scroll" }, bars),
      make("p", { class: "lab-buttons" }, back, next, last, again),
      says,
      make("div", { class: "scroll" }, table),
    );
    restart();

    /** A value that was not typed is 0, so that scores and values can be edited one after the other. */
    function valueOf(i) {
      return now.values[i] ?? 0;
    }

    function restart() {
      now.steps = onlineSteps(now.scores, now.scores.map((_, i) => valueOf(i)), now.block);
      go(0);
    }

    function go(to) {
      now.at = Math.min(Math.max(to, 0), now.steps.length);
      back.disabled = now.at === 0;
      next.disabled = last.disabled = now.at === now.steps.length;
      drawBars();
      drawTable();
      says.textContent = words();
      globalThis.Book.scrollers();
    }

    function drawBars() {
      const step = now.steps[now.at - 1];
      const m = step ? step.after.m : -Infinity;
      bars.replaceChildren(
        ...now.scores.map((x, i) => {
          const read = Boolean(step) && i < step.end;
          const weight = read ? Math.exp(x - (m === -Infinity ? 0 : m)) : 0;
          const state = !read ? "unread" : i >= step.start ? "now" : "read";
          const bar = make("span", { class: "bar", "aria-hidden": "true" }, make("span", { style: `height:${100 * weight}%` }));
          const words = read ? show(weight) : "unread";
          return make(
            "li",
            { class: `bar-${state}` },
            bar,
            make("span", { class: "bar-weight" }, words),
            make("span", { class: "bar-score" }, make("span", { class: "bar-name" }, "x "), show(x)),
            make("span", { class: "bar-value" }, make("span", { class: "bar-name" }, "v "), show(valueOf(i))),
          );
        }),
      );
    }

    function drawTable() {
      const step = now.steps[now.at - 1];
      const state = step ? step.after : { m: -Infinity, l: 0, o: 0 };
      const row = (name, key, how) =>
        make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, how || "at the start"), make("td", { "data-out": key }, show(state[key])));
      const sum = (before, added) => `${show(step.factor)} · ${show(before)} + ${show(added)}`;
      table.replaceChildren(
        make("thead", {}, make("tr", {}, ["", `after ${now.at} of ${now.steps.length} blocks`, "is"].map((t) => make("th", {}, t)))),
        make(
          "tbody",
          {},
          row("m", "m", step && `max(${show(step.before.m)}, the block)`),
          row("l", "l", step && sum(step.before.l, step.addL)),
          row("o", "o", step && sum(step.before.o, step.addO)),
          make("tr", {}, make("th", { scope: "row" }, "o / l"), make("td", {}, state.l > 0 ? "attention so far" : "no score yet: 0"), make("td", { "data-out": "attention" }, show(attention(state)))),
        ),
      );
    }

    function words() {
      const more = now.values.length !== now.scores.length ? ` (${now.scores.length} scores, ${now.values.length} values: a missing value counts as 0.)` : "";
      if (!now.scores.length) return `No scores: m = −∞, l = 0, and the answer is 0.${more}`;
      const step = now.steps[now.at - 1];
      if (!step) return `Before the first block: m = −∞, l = 0, o = 0.${more}`;
      const from = show(step.before.m);
      const to = show(step.after.m);
      let moved = `m moves from ${from} to ${to}: what l and o hold is multiplied by e^(${from} − ${to}) = ${show(step.factor)}.`;
      if (step.after.m === -Infinity) moved = "Every score so far is −∞: m stays −∞, 0 is subtracted in its place, and nothing is added.";
      else if (step.before.m === step.after.m) moved = `m stays ${to}: the factor is 1.`;
      else if (step.before.m === -Infinity) moved = `m moves from −∞ to ${to}: the factor is 0, and meets l = 0 and o = 0.`;
      return `Block ${now.at}, ${step.end - step.start === 1 ? "score" : "scores"} ${now.scores.slice(step.start, step.end).map(show).join(", ")}: ${moved}${more}`;
    }
  });
})();
