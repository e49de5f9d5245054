// Judges an answer to a self-check question by the rules of drills/study/answers.py, function for function; a test
// puts the same answers to both. Pure: must never touch the page.
(function () {
  "use strict";
  const BASES = {
    "base 2": ["base 2", "base2", "log2", "bit", "bits"],
    natural: ["natural", "nat", "nats", "base e", "basee", "e", "ln", "nepers"],
  };
  const NUMBER = /^[+-]?((\d+(_\d+)*\.?|\d+(_\d+)*\.\d+(_\d+)*|\.\d+(_\d+)*)(e[+-]?\d+(_\d+)*)?)$/i;
  const WORD = /^([+-]?)(inf|infinity|nan)$/i;

  const squeezed = (text) => text.trim().split(/\s+/).filter(Boolean).join(" ");
  const strip = (text, characters) => {
    let [from, to] = [0, text.length];
    while (from < to && characters.includes(text[from])) from += 1;
    while (to > from && characters.includes(text[to - 1])) to -= 1;
    return text.slice(from, to);
  };

  /** A digit of any script as 0 to 9; scripts have their ten digits in a row. */
  function digit(character) {
    const at = character.codePointAt(0);
    let zero = at;
    while (/\p{Nd}/u.test(String.fromCodePoint(zero - 1))) zero -= 1;
    return String((at - zero) % 10);
  }

  /** A number as people write it (1,024, −inf, 2e-3); null if it is none. */
  function asNumber(text) {
    const plain = text.replace(/\u2212/g, "-").replace(/\u221e/g, "inf").replace(/,/g, "").replace(/\p{Nd}/gu, digit).trim();
    const word = WORD.exec(plain);
    if (word) {
      if (word[2].toLowerCase() === "nan") return NaN;
      return word[1] === "-" ? -Infinity : Infinity;
    }
    return NUMBER.test(plain) ? Number(plain.replace(/_/g, "")) : null;
  }

  const base = (unit) => Object.keys(BASES).find((name) => BASES[name].includes(unit.toLowerCase())) || "";

  function convert(value, given, wanted) {
    if (given === wanted) return value;
    return wanted === "natural" ? value * Math.LN2 : value / Math.LN2;
  }

  function close(value, answer, tolerance) {
    if (answer === null) return false;
    if (!Number.isFinite(value) || !Number.isFinite(answer)) {
      return value === answer || (Number.isNaN(value) && Number.isNaN(answer));
    }
    return Math.abs(value - answer) <= tolerance + 1e-9 * Math.abs(answer);
  }

  function lastDigit(text) {
    const at = text.indexOf(".");
    const decimals = at < 0 ? "" : text.slice(at + 1);
    return /^\d+$/.test(decimals) ? 0.5 * 10 ** -decimals.length : 0;
  }

  function judgeNumber(question, given) {
    const words = given.replace(/%/g, " %").trim().split(/\s+/).filter(Boolean);
    let value = words.length ? asNumber(words[0]) : null;
    const unit = strip(words.slice(1).join(" "), "()");
    if (value === null) return { right: null, says: "Type a number, such as 11, -2.5, 1e-3 or -inf." };
    const wantedBase = base(question.unit);
    const givenBase = base(unit);
    if (unit && wantedBase && givenBase) {
      value = convert(value, givenBase, wantedBase);
    } else if (unit && unit.toLowerCase() !== question.unit.toLowerCase()) {
      return { right: null, says: question.unit ? `The unit is ${question.unit}.` : "Type the number without a unit." };
    }
    const answer = asNumber(question.answer);
    if (close(value, answer, question.tolerance)) return { right: true, says: "" };
    for (const [text, why] of Object.entries(question.wrongs)) {
      if (close(value, asNumber(text), Math.max(question.tolerance, lastDigit(text)))) {
        return { right: false, says: `${text}: ${why}`, known: text };
      }
    }
    if (wantedBase && answer !== null) {
      const other = wantedBase === "base 2" ? "natural" : "base 2";
      if (answer && close(value, convert(answer, wantedBase, other), Math.max(question.tolerance, 5e-3))) {
        return { right: false, says: `That is the answer in the other unit, ${other}; asked is ${wantedBase}.` };
      }
    }
    return { right: false, says: "" };
  }

  function judgeChoice(question, given) {
    const typed = given.toLowerCase();
    const byText = Object.keys(question.options).find((key) => question.options[key].toLowerCase() === typed);
    const letter = byText || typed.replace(/[).]+$/, "");
    if (!Object.hasOwn(question.options, letter)) {
      return { right: null, says: `Type one of ${Object.keys(question.options).join(", ")}.` };
    }
    if (letter === question.answer) return { right: true, says: "" };
    const why = question.wrongs[letter];
    return { right: false, says: why ? `${letter}: ${why}` : "", known: why ? letter : undefined };
  }

  function sameWord(one, other) {
    if (one.toLowerCase() === other.toLowerCase()) return true;
    const [left, right] = [asNumber(one), asNumber(other)];
    return left !== null && right !== null && left === right;
  }

  function sameOutput(given, wanted) {
    if (given.toLowerCase() === squeezed(wanted).toLowerCase()) return true;
    const [left, right] = [given, wanted].map((text) => text.replace(/[[\](),]/g, " ").trim().split(/\s+/).filter(Boolean));
    return left.length > 0 && left.length === right.length && left.every((word, at) => sameWord(word, right[at]));
  }

  function judgeOutput(question, given) {
    if (!given) {
      return { right: null, says: "Type what the program prints; several lines go on one, with spaces between." };
    }
    if (sameOutput(given, question.answer)) return { right: true, says: "" };
    for (const [text, why] of Object.entries(question.wrongs)) {
      if (sameOutput(given, text)) return { right: false, says: `${text}: ${why}`, known: text };
    }
    return { right: false, says: "" };
  }

  /** right: true, false, or null for what cannot be read. says: why, may be empty. known: the wrong answer it matches. */
  function judge(question, given) {
    const answer = squeezed(given);
    if (question.kind === "number") return judgeNumber(question, answer);
    return question.kind === "choice" ? judgeChoice(question, answer) : judgeOutput(question, answer);
  }

  globalThis.Answers = { asNumber, judge };
})();
