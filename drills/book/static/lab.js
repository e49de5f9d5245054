// What the figures that move share: finding their place, making elements, fields that say what is wrong with an entry.
(function () {
  "use strict";

  /** An element with attributes, event handlers (`onclick`) and children; null children are left out. */
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value === true) element.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return element;
  }

  /** Puts a figure in the place of its still. `draw(place, start)`: start is the case that the page was built with. */
  function figure(name, draw) {
    document.querySelectorAll(`[data-figure="${name}"]`).forEach((lab) => {
      const live = lab.querySelector(".lab-live");
      draw(live, JSON.parse(lab.dataset.case));
      live.hidden = false;
      lab.querySelector(".lab-still").hidden = true;
      globalThis.Book.scrollers();
    });
  }

  let fields = 0;

  /** A labelled text field. `change(text)` returns a problem in one line, or "" when the entry was taken. */
  function field(label, value, change) {
    fields += 1;
    const id = `lab-field-${fields}`;
    const input = make("input", {
      id, type: "text", value, autocomplete: "off", autocapitalize: "off", spellcheck: "false",
      "aria-describedby": `${id}-problem`,
    });
    const problem = make("span", { id: `${id}-problem`, class: "lab-problem", role: "status" });
    const take = () => {
      const says = change(input.value);
      problem.textContent = says;
      input.setAttribute("aria-invalid", String(Boolean(says)));
    };
    input.addEventListener("input", take);
    const set = (text) => {
      input.value = text;
      take();
    };
    return { element: make("div", { class: "lab-field" }, make("label", { for: id }, label), input, problem), set, input };
  }

  /** A labelled choice. options: [value, words]. */
  function select(label, options, value, change) {
    fields += 1;
    const id = `lab-field-${fields}`;
    const list = make(
      "select",
      { id, onchange: () => change(list.value) },
      options.map(([one, words]) => make("option", { value: one, selected: String(one) === String(value) }, words)),
    );
    return { element: make("div", { class: "lab-field" }, make("label", { for: id }, label), list), list };
  }

  /** A slider with its number beside it. `steps`: the values it can take. */
  function slider(label, steps, value, change) {
    fields += 1;
    const id = `lab-field-${fields}`;
    const words = (at) => steps[at].toLocaleString("en-US");
    const output = make("output", { for: id });
    const input = make("input", {
      id, type: "range", min: 0, max: steps.length - 1, step: 1, value: Math.max(0, steps.indexOf(value)),
      oninput: () => move(),
    });
    function move() {
      const at = Number(input.value);
      output.textContent = words(at);
      input.setAttribute("aria-valuetext", words(at));
      change(steps[at]);
    }
    const set = (to) => {
      input.value = steps.indexOf(to);
      move();
    };
    const element = make("div", { class: "lab-field lab-slider" }, make("label", { for: id }, label, " ", output), input);
    output.textContent = words(Number(input.value));
    input.setAttribute("aria-valuetext", output.textContent);
    return { element, set, input };
  }

  const button = (words, press, attributes = {}) =>
    make("button", { type: "button", class: "lab-button", onclick: press, ...attributes }, words);

  /** Two to four exclusive choices, as radio buttons. */
  function radios(legend, options, value, change) {
    fields += 1;
    const name = `lab-field-${fields}`;
    const inputs = options.map(([one, words]) =>
      make(
        "label",
        { class: "lab-radio" },
        make("input", { type: "radio", name, value: one, checked: one === value, onchange: () => change(one) }),
        make("span", {}, words),
      ),
    );
    return make("fieldset", { class: "lab-radios" }, make("legend", {}, legend), inputs);
  }

  globalThis.Lab = { button, field, figure, make, radios, select, slider };
})();
