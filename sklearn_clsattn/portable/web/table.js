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
    const advice = "cells with separators or new lines need quotation marks";
    throw new Error(`Row ${at + 2} of the table has ${cells}: ${advice}.`);
  }
  return { header, rows, separator, hasMark };
}

/**
 * Return the sign that divides the first row, outside of quotes, into the most cells.
 * @param {string} text
 * @returns {string}
 */
function separatorOf(text) {
  const [firstRow] = text.replace(/"[^"]*"/g, "").split(/[\r\n]/, 1);
  const counts = SEPARATORS.map((separator) => firstRow.split(separator).length);
  return SEPARATORS[counts.indexOf(Math.max(...counts))];
}

/**
 * Return the rows of delimited text, without empty lines, unless rows have one cell.
 * @param {string} text
 * @param {string} separator
 * @returns {string[][]}
 */
function readRows(text, separator) {
  const isEnd = (/** @type {number} */ at) =>
    at >= text.length || text[at] === "\n" || text[at] === "\r";
  const rows = [];
  for (let at = 0; at < text.length; at++) {
    if (isEnd(at)) {
      if (rows[0]?.length === 1) rows.push([""]);
      if (text[at] === "\r" && text[at + 1] === "\n") at++;
      continue;
    }
    // 1) The cells of a row.
    const row = [];
    for (;;) {
      const cell = readQuoted(text, at);
      at = cell.stop;
      while (!isEnd(at) && text[at] !== separator) at++;
      row.push(cell.content + text.slice(cell.stop, at));
      if (isEnd(at)) break;
      at++;
    }
    // 2) The row, and what ends it.
    rows.push(row);
    if (text[at] === "\r" && text[at + 1] === "\n") at++;
  }
  return rows;
}

/**
 * Return what is in quotes from a place on, where two quotes stand for one, and where it stops.
 * @param {string} text
 * @param {number} start
 * @returns {{content: string, stop: number}}
 */
function readQuoted(text, start) {
  if (text[start] !== '"') return { content: "", stop: start };
  for (let stop = start + 1; ; stop++) {
    stop = text.indexOf('"', stop);
    if (stop < 0) throw new Error("A quotation mark of the table is not closed.");
    if (text[stop + 1] !== '"') {
      const content = text.slice(start + 1, stop).replaceAll('""', '"');
      return { content, stop: stop + 1 };
    }
    stop++; // the second quote of a pair
  }
}

/**
 * Return a row as delimited text.
 * @param {string[]} row
 * @param {string} separator
 * @returns {string}
 */
export function writeRow(row, separator) {
  const cells = row.map((cell) => {
    const isAlone = cell === "" && row.length === 1; // which would be an empty line
    const needsQuotes = isAlone || cell.includes(separator) || /["\r\n]/.test(cell);
    return needsQuotes ? `"${cell.replaceAll('"', '""')}"` : cell;
  });
  return `${cells.join(separator)}\r\n`;
}
