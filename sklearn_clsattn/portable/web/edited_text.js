// Texts without some of their words.
//
// Whatever is said of words is about a text that was edited and predicted again, because a text
// without a word is another text: its neighbours become a pair, positions move, counts change.

import { codePoints, textOf } from "./unicode.js";

/** @typedef {import("./texts.js").Span} Span */
/** @typedef {import("./texts.js").TextReader} TextReader */

/**
 * A distinct word of a text, in any case and in spellings that look the same.
 * @typedef {object} Word
 * @property {string} name as it stands where it comes first
 * @property {Span[]} spans of its occurrences
 */

const CLOSING = new Set(codePoints(".,;:!?)]}…。、，！？")); // no space stands before these
const NEW_LINE = 0x0a;

/** A text, and its words, which can be deleted. */
export class EditableText {
  /**
   * @param {string} text
   * @param {TextReader} reader
   */
  constructor(text, reader) {
    this.reader = reader;
    this.codes = codePoints(text);
    /** @type {Map<string, Word>} */
    const words = new Map();
    for (const [start, stop] of wordSpans(this.codes, reader)) {
      const key = textOf(reader.normalized(this.codes.slice(start, stop), true));
      const known = words.get(key);
      if (known) known.spans.push([start, stop]);
      else words.set(key, { name: textOf(this.codes, start, stop), spans: [[start, stop]] });
    }
    /** in the order of their first occurrences */
    this.words = [...words.values()];
    this.nOccurrences = this.words.reduce((n, { spans }) => n + spans.length, 0);
  }

  /**
   * Return the spans of some words, given by their numbers, in order.
   * @param {Iterable<number>} numbers
   * @returns {Span[]}
   */
  spansOf(numbers) {
    const spans = [...numbers].flatMap((number) => this.words[number].spans);
    return spans.sort((one, other) => one[0] - other[0]);
  }

  /**
   * Return the text without some words, given by their numbers.
   * @param {Iterable<number>} numbers
   * @returns {string}
   */
  without(numbers) {
    return deleteSpans(this.codes, this.spansOf(numbers), this.reader);
  }
}

/**
 * Return the start and stop of each word of a text; punctuation is no word.
 * @param {number[]} codes
 * @param {TextReader} reader
 * @returns {Span[]}
 */
export function wordSpans(codes, reader) {
  // 1) The words of the normal form.
  const { symbol } = reader.unicode.bit;
  const form = reader.aligned(codes, false);
  const tokens = reader
    .tokens(form.codes)
    .filter(({ word }) => codePoints(word).some((code) => reader.unicode.is(code, symbol)));
  // 2) The words of the text itself, joined where they overlap.
  /** @type {Span[]} */
  const words = [];
  for (const [start, stop] of reader.spansInOriginal(codes, form, tokens)) {
    const last = words[words.length - 1];
    if (last && start < last[1]) last[1] = Math.max(stop, last[1]);
    else words.push([start, stop]);
  }
  return words;
}

/**
 * Return a text without some spans, which are in order, and with its spaces mended: one stays
 * where there were two, none before closing punctuation, and words that would become one are kept
 * apart.
 * @param {number[]} codes
 * @param {Span[]} spans
 * @param {TextReader} reader
 * @returns {string}
 */
export function deleteSpans(codes, spans, reader) {
  if (!spans.length) return textOf(codes);
  // 1) What stays of the text.
  const pieces = [];
  let end = 0;
  for (const [start, stop] of spans) {
    pieces.push(codes.slice(end, start));
    end = stop;
  }
  const rest = codes.slice(end);
  // 2) The pieces joined one by one.
  let edited = pieces[0];
  for (const piece of [...pieces.slice(1), rest]) edited = joined(edited, piece, reader);
  if (!strippedLeft(rest, reader).length) edited = strippedRight(edited, reader);
  return textOf(edited);
}

/**
 * Return the characters before and after a deletion as one text.
 * @param {number[]} before
 * @param {number[]} after
 * @param {TextReader} reader
 * @returns {number[]}
 */
function joined(before, after, reader) {
  const left = strippedRight(before, reader);
  const right = strippedLeft(after, reader);
  if (!left.length) return [...before, ...right]; // at the start of the text
  const spaceBefore = before.slice(left.length);
  const spaceAfter = after.slice(0, after.length - right.length);
  const hasLineBefore = spaceBefore.includes(NEW_LINE);
  const hasLineAfter = spaceAfter.includes(NEW_LINE);
  if (!right.length) {
    // Before another deletion, or at the end.
    const isLongerBreak = hasLineAfter && !hasLineBefore;
    return spaceBefore.length && !isLongerBreak ? before : [...left, ...after];
  }
  /** @type {number[]} */
  let space = [];
  if (hasLineBefore || hasLineAfter) space = hasLineBefore ? spaceBefore : spaceAfter;
  else if (CLOSING.has(right[0]) && !spaceAfter.length) space = [];
  else if (spaceBefore.length || spaceAfter.length) {
    space = spaceBefore.length ? spaceBefore : spaceAfter;
  } else if (wouldJoin(left, right, reader)) space = [0x20];
  return [...left, ...space, ...right];
}

/**
 * Return whether two texts side by side share a word; what is no letter may be between.
 * @param {number[]} left
 * @param {number[]} right
 * @param {TextReader} reader
 * @returns {boolean}
 */
function wouldJoin(left, right, reader) {
  const { unicode } = reader;
  const { attached, word, alone } = unicode.bit;
  const isBase = (/** @type {number} */ code) => !unicode.is(code, attached);
  const last = left.findLast(isBase);
  const first = right.find(isBase);
  const both = [last, first].filter((code) => code !== undefined);
  if (!both.length) return false;
  return both.every((code) => unicode.is(code, word) && !unicode.is(code, alone));
}

/**
 * Return characters without white space at the end.
 * @param {number[]} codes
 * @param {TextReader} reader
 * @returns {number[]}
 */
function strippedRight(codes, reader) {
  const { space } = reader.unicode.bit;
  let stop = codes.length;
  while (stop && reader.unicode.is(codes[stop - 1], space)) stop--;
  return codes.slice(0, stop);
}

/**
 * Return characters without white space at the start.
 * @param {number[]} codes
 * @param {TextReader} reader
 * @returns {number[]}
 */
function strippedLeft(codes, reader) {
  const { space } = reader.unicode.bit;
  let start = 0;
  while (start < codes.length && reader.unicode.is(codes[start], space)) start++;
  return codes.slice(start);
}
