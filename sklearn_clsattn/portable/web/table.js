// Tables of delimited text: read, and written with predictions.

/**
 * @typedef {object} Table
 * @property {string[]} header
 * @property {string[][]} rows
 * @property {string} separator
 * @property {boolean} hasMark whether it starts with the byte order mark, which Excel wants
 */

const SEPARATORS = [",", ";", "\t"];
const MARK = "\ufeff";

/**
 * Return the table in a text: cells between separators, in quotes where they contain one, the
 * separator or a new line.
 * @param {string} text
 * @returns {Table}
 */
export function readTable(text) {
  const hasMark = text.startsWith(MARK);
  const content = hasMark ? text.slice(1) : text;
  const separator = separatorOf(content);
  const rows = readRows(content, separator);
  const header = rows.shift();
  if (!header) throw new Error("The table is empty.");
  const at = rows.findIndex((row) => row.length !== header.length);
  if (at >= 0) {
    const cells = `${rows[at].length} cells, but the first row has ${header.length}`;
    throw new Error(`Row ${at + 2} of the table has ${cells}.`);
  }
  return { header, rows, separator, hasMark };
}

/**
 * Return the sign that divides the first row, outside of quotes, into the most cells.
 * @param {string} text
 * @returns {string}
 */
function separatorOf(text) {
  const [firstRow] = text.replace(/"[^"]*"/g, "").split(/\r?\n/, 1);
  const counts = SEPARATORS.map((separator) => firstRow.split(separator).length);
  return SEPARATORS[counts.indexOf(Math.max(...counts))];
}

/**
 * Return the rows of delimited text, without empty ones.
 * @param {string} text
 * @param {string} separator
 * @returns {string[][]}
 */
function readRows(text, separator) {
  const rows = [];
  /** @type {string[]} */
  let row = [];
  let at = 0;
  while (at < text.length) {
    // 1) A cell.
    let cell = "";
    if (text[at] === '"') {
      let start = at + 1;
      for (;;) {
        const quote = text.indexOf('"', start);
        if (quote < 0) throw new Error("A quotation mark of the table is not closed.");
        cell += text.slice(start, quote);
        at = quote + 1;
        if (text[at] !== '"') break;
        cell += '"'; // two stand for one
        start = at + 1;
      }
    }
    const start = at;
    while (at < text.length && text[at] !== separator && text[at] !== "\n") at++;
    const isLast = text[at] !== separator;
    cell += text.slice(start, isLast && text[at - 1] === "\r" ? Math.max(at - 1, start) : at);
    row.push(cell);
    // 2) What comes after it.
    at++;
    if (isLast) {
      if (row.length > 1 || row[0] !== "") rows.push(row);
      row = [];
    } else if (at === text.length) {
      row.push("");
    }
  }
  if (row.length) rows.push(row);
  return rows;
}

/**
 * Return a row as delimited text.
 * @param {string[]} row
 * @param {string} separator
 * @returns {string}
 */
export function writeRow(row, separator) {
  const cells = row.map((cell) => {
    const needsQuotes = cell.includes(separator) || /["\r\n]/.test(cell);
    return needsQuotes ? `"${cell.replaceAll('"', '""')}"` : cell;
  });
  return `${cells.join(separator)}\r\n`;
}
