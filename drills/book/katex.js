// Reads [[latex, display], …] as JSON and writes the HTML of each. The first argument is KaTeX's folder.
// A formula that KaTeX does not understand ends the run: a page must not be published with one.
const katex = require(process.argv[2]);
const formulas = JSON.parse(require("fs").readFileSync(0, "utf-8"));
const html = formulas.map(([latex, displayMode]) => {
  try {
    return katex.renderToString(latex, { displayMode, throwOnError: true, strict: "ignore" });
  } catch (error) {
    process.stderr.write(`${latex.trim()}: ${error.message}\n`);
    process.exit(1);
  }
});
process.stdout.write(JSON.stringify(html));
