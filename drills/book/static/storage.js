// Where the browser refuses to keep anything (cookies blocked, some private windows), even asking for its store throws.
// Then a store that lasts as long as the page stands in, so that every script of the page runs.
(function () {
  "use strict";
  function memory() {
    const kept = new Map();
    return {
      getItem: (key) => kept.get(String(key)) ?? null,
      setItem: (key, value) => void kept.set(String(key), String(value)),
      removeItem: (key) => void kept.delete(String(key)),
    };
  }

  for (const name of ["localStorage", "sessionStorage"]) {
    try {
      window[name].getItem("");
    } catch {
      Object.defineProperty(window, name, { value: memory(), configurable: true });
    }
  }
})();
