// The self-check of a page: shows the forms, checks what is answered, and keeps in this browser what was right.
// Must never send anything anywhere, and must work where the browser keeps nothing.
(function () {
  "use strict";
  const forms = [...document.querySelectorAll("form.quiz")];
  if (!forms.length) return;
  const key = `attention-state-drills:${document.querySelector("[data-lesson]").dataset.lesson}`;
  let right = new Set(kept());
  const score = document.createElement("p");
  score.className = "quiz-score";
  const words = document.createElement("span");
  words.setAttribute("role", "status");
  const again = document.createElement("button");
  again.type = "button";
  again.className = "quiz-again";
  again.textContent = "Start over";
  again.addEventListener("click", startOver);
  score.append(words, " ", again);

  forms.forEach((form) => {
    const list = form.previousElementSibling;
    if (form.querySelector("fieldset") && list && list.tagName === "UL") list.hidden = true;
    form.hidden = false;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      check(form);
    });
    if (right.has(form.dataset.number)) say(form, "right", "Answered right before.");
  });
  forms[0].closest(".part").querySelector("h3").before(score);
  count();

  function kept() {
    try {
      const found = JSON.parse(localStorage.getItem(key));
      return Array.isArray(found) ? found.map(String) : [];
    } catch {
      return [];
    }
  }

  function keep() {
    try {
      localStorage.setItem(key, JSON.stringify([...right]));
    } catch {
      // Refused (a private window, a full store): the score then lasts as long as the page.
    }
  }

  function check(form) {
    const question = JSON.parse(form.dataset.question);
    const given = new FormData(form).get("answer") || "";
    const verdict = given || question.kind !== "choice" ? Answers.judge(question, given) : { right: null, says: "Choose one." };
    if (verdict.right) {
      right.add(form.dataset.number);
      keep();
      const answer = form.nextElementSibling;
      if (answer && answer.tagName === "DETAILS") answer.open = true;
      say(form, "right", "Right.");
    } else if (verdict.right === null) {
      say(form, "unread", verdict.says);
    } else {
      say(form, "wrong", "Not quite. ", verdict.known ? question.shown[verdict.known] : "", verdict.known ? "" : verdict.says);
    }
    count();
  }

  function say(form, kind, text, html = "", more = "") {
    const line = form.querySelector(".quiz-verdict");
    line.dataset.kind = kind;
    line.textContent = text;
    if (html) {
      const reason = document.createElement("span");
      reason.innerHTML = html; // made while the book was built, from the page's own quiz fence
      line.append(reason);
    }
    if (more) line.append(more);
    const field = form.querySelector('input[type="text"]');
    if (field) field.setAttribute("aria-invalid", String(kind === "wrong" || kind === "unread"));
  }

  function count() {
    const number = forms.filter((form) => right.has(form.dataset.number)).length;
    words.textContent = `${number} of ${forms.length} answered right.`;
    again.hidden = number === 0;
  }

  function startOver() {
    right = new Set();
    keep();
    forms.forEach((form) => {
      form.reset();
      say(form, "", "");
      form.querySelector('input[type="text"]')?.removeAttribute("aria-invalid");
      const answer = form.nextElementSibling;
      if (answer && answer.tagName === "DETAILS") answer.open = false;
    });
    count();
    forms[0].querySelector("input").focus();
  }
})();
