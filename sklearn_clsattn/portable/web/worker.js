// What takes long, done beside the page: searches for words, and tables.

import { load } from "./scorer.js";
import { readTable, writeRow } from "./table.js";
import { View } from "./view.js";

/** @typedef {import("./scorer.js").Scorer} Scorer */
/** @typedef {import("./table.js").Table} Table */

const ROWS_AT_ONCE = 500; // between reports of progress

/** Answer the page's messages; the first has the model's file. */
export function startWorker() {
  /** @type {Scorer} */
  let scorer;
  /** @type {Table} */
  let table;
  /** @type {Promise<void>} */
  let before = Promise.resolve();

  /** @type {Record<string, (message: any) => any>} */
  const answers = {
    load: async ({ file }) => {
      scorer = await load(file);
    },
    fewestWords: ({ text, label }) => scorer.explain(text).fewestWords({ label }),
    open: async ({ file }) => {
      const bytes = await file.arrayBuffer();
      table = readTable(decoded(bytes));
      return { header: table.header, nRows: table.rows.length, likely: longestColumn(table) };
    },
    classify: ({ column, withWords }) => classified(scorer, table, column, withWords),
  };
  self.onmessage = ({ data }) => {
    before = before.then(async () => {
      try {
        self.postMessage({ id: data.id, answer: await answers[data.question](data) });
      } catch (error) {
        self.postMessage({ id: data.id, error: /** @type {Error} */ (error).message });
      }
    });
  };
}

/**
 * Return the text of a file in UTF-8, with its byte order mark.
 * @param {ArrayBuffer} bytes
 * @returns {string}
 */
function decoded(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Error("The file is no CSV in UTF-8. In Excel, save the table as “CSV UTF-8”.");
  }
}

/**
 * Return a table with predictions, as a file; report the share that is done on the way.
 * @param {Scorer} scorer
 * @param {Table} table
 * @param {number} column of the texts
 * @param {boolean} withWords whether to add the words that speak most for each prediction
 * @returns {{file: Blob, nRows: number}}
 */
function classified(scorer, table, column, withWords) {
  const { header, rows, separator, hasMark } = table;
  const names = [
    "prediction",
    ...scorer.classes.map((_, number) => `probability_${nameOf(scorer, number)}`),
  ];
  if (withWords) names.push("words");
  const taken = names.filter((name) => header.includes(name));
  if (taken.length) {
    const columns = taken.join(", ");
    throw new Error(`The table has columns named ${columns} already: rename or remove them.`);
  }
  const parts = [(hasMark ? "\ufeff" : "") + writeRow([...header, ...names], separator)];
  let part = "";
  rows.forEach((row, at) => {
    const { numbers, probabilities } = scorer.predict(row[column]);
    const cells = [numbers.map((number) => nameOf(scorer, number)).join(", ")];
    for (const probability of probabilities) cells.push(String(Number(probability.toFixed(6))));
    if (withWords) cells.push(strongestWords(scorer, row[column]));
    part += writeRow([...row, ...cells], separator);
    if ((at + 1) % ROWS_AT_ONCE === 0) {
      parts.push(part);
      part = "";
      self.postMessage({ progress: (at + 1) / rows.length });
    }
  });
  const file = new Blob([...parts, part], { type: "text/csv;charset=utf-8" });
  return { file, nRows: rows.length };
}

/**
 * Return the whole name of a class.
 * @param {Scorer} scorer
 * @param {number} number
 * @returns {string}
 */
function nameOf(scorer, number) {
  const label = scorer.classes[number];
  return typeof label === "string" ? label : scorer.labels[number];
}

/**
 * Return the words of a text that speak most for its prediction, those of the page's sentence.
 * @param {Scorer} scorer
 * @param {string} text
 * @returns {string}
 */
function strongestWords(scorer, text) {
  const { sides, reasons } = new View(scorer.explain(text));
  const [reason] = reasons;
  if (reason?.sign !== sides[0].sign) return ""; // nothing speaks for it
  return reason.tokens.map(({ name }) => name).join(" | ");
}

/**
 * Return the column with the longest cells, which are likely to be the texts.
 * @param {Table} table
 * @returns {number}
 */
function longestColumn({ header, rows }) {
  const lengths = header.map((_, at) => rows.reduce((sum, row) => sum + row[at].length, 0));
  return lengths.indexOf(Math.max(...lengths));
}
