// Lesson 2's figure: parts of one key each, merged in whatever order the reader likes; the answer stays.
(function () {
  "use strict";
  const { button, field, figure, make } = Lab;
  const { mergeTriples, readNumbers, show, triple } = Maths;
  const MOST = 8;

  figure("merge_tree", (place, start) => {
    const now = { ...start, roots: [], chosen: null, average: false };
    const tree = make("div", { class: "tree", role: "group", "aria-label": "Parts" });
    const says = make("p", { class: "lab-says", role: "status" });
    const truth = make("p", { class: "lab-truth" });
    const average = make("input", { type: "checkbox", id: "merge-tree-average", onchange: () => replay(average.checked) });

    const scores = field("Scores, a part each", start.scores.map(show).join(", "), (text) => {
      const read = readNumbers(text, { most: MOST, name: "scores", infinite: true });
      if (read.problem) return read.problem;
      now.scores = read.numbers;
      apart();
      return "";
    });
    const values = field("Values", start.values.map(show).join(", "), (text) => {
      const read = readNumbers(text, { most: MOST, name: "values" });
      if (read.problem) return read.problem;
      now.values = read.numbers;
      apart();
      return "";
    });

    place.append(
      make("div", { class: "lab-fields" }, scores.element, values.element),
      make(
        "p",
        { class: "lab-buttons" },
        button("One after the other", () => whole(() => [0, 1])),
        button("In pairs", () => whole(pairs)),
        button("From the right", () => whole((roots) => [roots.length - 2, roots.length - 1])),
        button("Take apart", () => apart()),
      ),
      make("p", { class: "lab-check" }, average, make("label", { for: "merge-tree-average" }, "Merge by plain average (a known mistake)")),
      make("div", { class: "scroll" }, tree),
      says,
      truth,
    );
    apart("Choose one part, then another: they become one. Or take one of the orders above.");

    function valuesInFull() {
      return now.scores.map((_, i) => now.values[i] ?? 0);
    }

    function apart(words = "Every key is a part of its own.") {
      const all = valuesInFull();
      now.roots = now.scores.map((x, i) => ({ keys: [i], state: triple([x], [all[i]]) }));
      now.chosen = null;
      draw(words);
    }

    /** Merges until one is left; `pick` says which two of the roots are next. */
    function whole(pick) {
      apart();
      now.pairing = 0;
      while (now.roots.length > 1) join(...pick(now.roots));
      draw(now.scores.length > 1 ? "Merged to one." : "There is nothing to merge.");
    }

    /** Neighbors in pairs, level by level. */
    function pairs(roots) {
      const at = now.pairing;
      if (at + 1 >= roots.length) {
        now.pairing = 1;
        return [0, 1];
      }
      now.pairing += 1;
      return [at, at + 1];
    }

    function combined(a, b) {
      const merged = mergeTriples(a.state, b.state);
      return now.average ? { ...merged, o: (a.state.o + b.state.o) / 2 } : merged;
    }

    function join(i, j) {
      const [a, b] = [now.roots[i], now.roots[j]];
      const node = { keys: [...a.keys, ...b.keys], kids: [a, b], state: combined(a, b) };
      now.roots = now.roots.filter((root) => root !== a && root !== b);
      now.roots.splice(Math.min(i, j), 0, node);
      return node;
    }

    /** The same tree with the other way to merge. */
    function replay(wrong) {
      now.average = wrong;
      const again = (node) => {
        if (node.kids) {
          node.kids.forEach(again);
          node.state = combined(...node.kids);
        }
      };
      now.roots.forEach(again);
      draw(wrong ? "Now every merge takes the plain average of the two o." : "Now every merge weighs by l · e^(m − max).");
    }

    function choose(node) {
      if (now.chosen === null) {
        now.chosen = node;
        return draw(`${name(node)} is chosen: choose another to merge it with.`, node);
      }
      if (now.chosen === node) {
        now.chosen = null;
        return draw("None is chosen.", node);
      }
      const [a, b] = [now.chosen, node];
      now.chosen = null;
      const made = join(now.roots.indexOf(a), now.roots.indexOf(b));
      const weights = `weights ${show(made.state.wA)} and ${show(made.state.wB)}`;
      return draw(`${name(a)} and ${name(b)} merged: ${now.average ? "plain average" : weights}.`, made);
    }

    function name(node) {
      return `${node.keys.length === 1 ? "Key" : "Keys"} ${node.keys.join(", ")}`;
    }

    function box(node, isRoot) {
      const lines = [`m ${show(node.state.m)}`, `l ${show(node.state.l)}`, `o ${show(node.state.o)}`];
      const inside = [make("strong", {}, name(node)), ...lines.map((line) => make("span", {}, line))];
      if (!isRoot || now.roots.length === 1) return make("div", { class: "tree-box", "data-root": isRoot }, inside);
      node.button = make(
        "button",
        { type: "button", class: "tree-box", "aria-pressed": String(now.chosen === node), onclick: () => choose(node) },
        inside,
      );
      return node.button;
    }

    function branch(node, isRoot) {
      const kids = node.kids ? make("div", { class: "tree-kids" }, node.kids.map((kid) => branch(kid, false))) : null;
      return make("div", { class: "tree-node" }, box(node, isRoot), kids);
    }

    function draw(words, focus) {
      tree.replaceChildren(...now.roots.map((root) => branch(root, true)));
      if (focus?.button?.isConnected) focus.button.focus();
      says.textContent = now.scores.length ? words : "No parts: the answer is m = −∞, l = 0, o = 0.";
      const all = triple(now.scores, valuesInFull());
      const numbers = ({ m, l, o }) => `m = ${show(m)}, l = ${show(l)}, o = ${show(o)}`;
      const root = now.roots.length === 1 ? now.roots[0].state : null;
      const same = root && Math.abs(root.o - all.o) <= 1e-9 * Math.max(1, Math.abs(all.o));
      truth.replaceChildren(`All keys in one program: ${numbers(all)}.`);
      truth.dataset.same = root ? String(same) : "";
      if (root) truth.append(make("strong", {}, same ? " The same." : ` The plain average gives ${show(root.o)}: wrong, and another grouping may give another number.`));
      globalThis.Book.scrollers();
    }
  });
})();
