// The maths of the figures, pure and in double precision: what drills/lessons/oracle.py computes, for a page to show.
// Empty is -Infinity throughout; nothing here gives NaN for what readNumbers accepts. Must never touch the page.
(function () {
  "use strict";
  const LARGEST = 1e100;
  const MINUS_INFINITY = -Infinity;

  /** Numbers as typed, "[1, 2, −inf]": { numbers } or { problem: one line that says what to do }. */
  function readNumbers(text, { most, name, infinite = false }) {
    const words = text.replace(/[[\](){}]/g, " ").split(/[\s,;]+/).filter(Boolean);
    if (words.length > most) return { problem: `At most ${most} ${name} fit here; these are ${words.length}.` };
    const numbers = [];
    for (const word of words) {
      const number = Answers.asNumber(word);
      const short = word.length > 20 ? `${word.slice(0, 20)}…` : word;
      if (number === null || Number.isNaN(number)) return { problem: `“${short}” is not a number.` };
      if (number === MINUS_INFINITY && !infinite) return { problem: `−∞ cannot stand among the ${name}.` };
      if (number !== MINUS_INFINITY && Math.abs(number) > LARGEST) {
        return { problem: `“${short}” is too large: ${name} go up to 1e100 here.` };
      }
      numbers.push(number === 0 ? 0 : number);
    }
    return { numbers };
  }

  /** A number for reading: 1.368, 26.21, 2.3e10, −∞. */
  function show(x) {
    if (x === MINUS_INFINITY) return "−∞";
    if (x === Infinity) return "∞";
    const size = Math.abs(x);
    let text;
    if (Number.isInteger(x) && size < 1e6) text = String(size);
    else if (size >= 1e6 || size < 5e-4) text = size.toExponential(2).replace("e+", "e").replace(/\.?0+e/, "e").replace("e-", "e−");
    else text = size.toFixed(size >= 10 ? 2 : 3);
    return x < 0 ? `−${text}` : text;
  }

  const shiftOf = (m) => (m === MINUS_INFINITY ? 0 : m);
  const largest = (numbers) => numbers.reduce((a, b) => Math.max(a, b), MINUS_INFINITY);
  /** 0 times anything is 0 here: an empty part's payload is not used. */
  const times = (weight, value) => (weight > 0 ? weight * value : 0);

  /** The online softmax, block by block; a step holds what it found and what it left. */
  function onlineSteps(scores, values, block) {
    const steps = [];
    let state = { m: MINUS_INFINITY, l: 0, o: 0 };
    for (let start = 0; start < scores.length; start += block) {
      const part = scores.slice(start, start + block);
      const m = Math.max(state.m, largest(part));
      const factor = Math.exp(state.m - shiftOf(m));
      const weights = part.map((x) => Math.exp(x - shiftOf(m)));
      const addL = weights.reduce((a, b) => a + b, 0);
      const addO = weights.reduce((a, w, i) => a + times(w, values[start + i]), 0);
      const after = { m, l: factor * state.l + addL, o: factor * state.o + addO };
      steps.push({ start, end: start + part.length, before: state, factor, weights, addL, addO, after });
      state = after;
    }
    return steps;
  }

  const attention = ({ l, o }) => (l > 0 ? o / l : 0);

  /** The triple of some keys, o normalized. */
  function triple(scores, values) {
    const m = largest(scores);
    const weights = scores.map((x) => Math.exp(x - shiftOf(m)));
    const l = weights.reduce((a, b) => a + b, 0);
    const o = weights.reduce((a, w, i) => a + times(w, values[i]), 0);
    return { m, l, o: attention({ l, o }) };
  }

  /** Two triples as one, with the weights that were used. */
  function mergeTriples(a, b) {
    const m = Math.max(a.m, b.m);
    const wA = a.l * Math.exp(a.m - shiftOf(m));
    const wB = b.l * Math.exp(b.m - shiftOf(m));
    const l = wA + wB;
    return { m, l, o: l > 0 ? (times(wA, a.o) + times(wB, b.o)) / l : 0, wA, wB };
  }

  const BASES = {
    natural: { exp: Math.exp, log: Math.log, of: (natural) => natural, name: "exp" },
    two: { exp: (x) => 2 ** x, log: Math.log2, of: (natural) => natural / Math.LN2, name: "exp2" },
  };

  /** Two states merged with a base's exp and log: the share of each, and the result. */
  function mergeStates(a, b, base) {
    const { exp, log } = BASES[base];
    const m = Math.max(a.s, b.s);
    const wA = exp(a.s - shiftOf(m));
    const wB = exp(b.s - shiftOf(m));
    const total = wA + wB;
    if (total === 0) return { shareA: 0, shareB: 0, o: 0, s: MINUS_INFINITY };
    const [shareA, shareB] = [wA / total, wB / total];
    return { shareA, shareB, o: times(shareA, a.o) + times(shareB, b.o), s: m + log(total) };
  }

  /** What one program of merge_states reads and writes: element offsets. order "NH" is right, "HN" the known mistake. */
  function addresses({ N, H, D }, program, order = "NH") {
    const i = Math.floor(program / H);
    const h = program % H;
    const reads = [];
    for (let n = 0; n < N; n += 1) {
      const s = order === "NH" ? (i * N + n) * H + h : (i * H + h) * N + n;
      reads.push({ n, s, from: s * D, to: s * D + D - 1 });
    }
    return { i, h, reads, writes: { s: i * H + h, from: (i * H + h) * D, to: (i * H + h) * D + D - 1 } };
  }

  /** Keys and bytes of one decoding step, half precision: a key and its value take 4 · Hkv · D bytes. */
  function cascadeBytes({ B, P, U, Hkv, D }) {
    const each = 4 * Hkv * D;
    const keys = { without: B * (P + U), with: B > 0 ? P + B * U : 0 };
    return {
      keys,
      bytes: { without: keys.without * each, with: keys.with * each },
      times: keys.with > 0 ? keys.without / keys.with : 1,
    };
  }

  /** 2,180,000,000 → "2.18 GB". */
  function showBytes(bytes) {
    const units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let at = 0;
    let size = bytes;
    while (size >= 999.5 && at < units.length - 1) {
      size /= 1000;
      at += 1;
    }
    return `${at === 0 || size >= 100 ? Math.round(size) : size >= 10 ? size.toFixed(1) : size.toFixed(2)} ${units[at]}`;
  }

  globalThis.Maths = {
    BASES, addresses, attention, cascadeBytes, mergeStates, mergeTriples, onlineSteps, readNumbers, show, showBytes, triple,
  };
})();
