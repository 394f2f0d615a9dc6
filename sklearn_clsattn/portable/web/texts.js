// From texts to tokens: the normal form of a text, with where its characters come from, and its
// words and single signs.

import { textOf } from "./unicode.js";

/** @typedef {import("./unicode.js").Unicode} Unicode */
/** @typedef {import("./types.js").Span} Span */

/**
 * A token of a text in its normal form.
 * @typedef {object} Token
 * @property {string} word
 * @property {number} start in characters of the normal form
 * @property {number} stop
 */

/**
 * Texts in normal form, and where each character comes from in the original.
 * @typedef {object} Aligned
 * @property {number[]} codes
 * @property {number[]} starts
 * @property {number[]} stops
 */

const NEW_LINE = 0x0a;
const APOSTROPHE = 0x27;
const CURLY_APOSTROPHE = 0x2019;
const BACKTICK = 0x60;
const KEYCAP = 0x20e3; // makes an emoji of the digit before it

/** Reads texts as the model's vectorizer does. */
export class TextReader {
  /** @param {Unicode} unicode */
  constructor(unicode) {
    this.unicode = unicode;
  }

  /**
   * Return a text in its normal form.
   * @param {number[]} codes
   * @param {boolean} lowercase
   * @returns {number[]}
   */
  normalized(codes, lowercase) {
    if (isAscii(codes)) return this.#withApostrophes(lowercase ? lowered(codes) : codes.slice());
    const visible = this.unicode.visible(codes).codes;
    return this.#withApostrophes(this.unicode.inForm(visible, lowercase));
  }

  /**
   * Return a text in its normal form, and where its characters come from.
   * @param {number[]} codes
   * @param {boolean} lowercase
   * @returns {Aligned}
   */
  aligned(codes, lowercase) {
    if (isAscii(codes)) {
      const starts = codes.map((_, at) => at);
      const stops = codes.map((_, at) => at + 1);
      return { codes: this.normalized(codes, lowercase), starts, stops };
    }
    const visible = this.unicode.visible(codes);
    const edges = this.unicode.clusterEdges(visible.codes);
    const result = [];
    const starts = [];
    const stops = [];
    // No step looks beyond a cluster, but the last.
    for (let at = 1; at < edges.length; at++) {
      const cluster = visible.codes.slice(edges[at - 1], edges[at]);
      for (const code of this.unicode.inForm(cluster, lowercase)) {
        result.push(code);
        starts.push(visible.places[edges[at - 1]]);
        stops.push(visible.places[edges[at] - 1] + 1);
      }
    }
    return { codes: this.#withApostrophes(result), starts, stops };
  }

  /**
   * Return the spans of tokens of a normal form in the original, so that no glyph is cut.
   * @param {number[]} original
   * @param {Aligned} form
   * @param {Token[]} tokens
   * @returns {Span[]}
   */
  spansInOriginal(original, form, tokens) {
    /** @type {Span[]} */
    const spans = tokens.map(({ start, stop }) => [form.starts[start], form.stops[stop - 1]]);
    if (isAscii(original)) return spans;
    const edges = this.unicode.clusterEdges(original);
    return spans.map(([start, stop]) => [
      edges[countUpTo(edges, start) - 1],
      edges[countUpTo(edges, stop - 1)],
    ]);
  }

  /**
   * Return the tokens of a text in its normal form.
   * @param {number[]} text
   * @returns {Token[]}
   */
  tokens(text) {
    const { unicode } = this;
    const { word, space, alone } = unicode.bit;
    const codes = [NEW_LINE, ...text, NEW_LINE]; // which are in no token
    const n = codes.length;
    // 1) Which characters are of words, and which are seen.
    const isWord = new Uint8Array(n);
    const isSeen = new Uint8Array(n);
    for (let at = 0; at < n; at++) {
      isWord[at] = unicode.is(codes[at], word) && !unicode.is(codes[at], alone) ? 1 : 0;
      isSeen[at] = unicode.is(codes[at], space) ? 0 : 1;
    }
    // 2) A cluster is what its first character is, but a keycap is a sign.
    const joins = this.#joins(codes);
    let first = 0;
    const firstOf = codes.map((_, at) => (joins[at] ? first : (first = at)));
    codes.forEach((code, at) => {
      if (code === KEYCAP) isWord[firstOf[at]] = 0;
    });
    for (let at = 0; at < n; at++) {
      isWord[at] = isWord[firstOf[at]];
      isSeen[at] = isSeen[firstOf[at]];
    }
    // 3) Apostrophes within words.
    const within = [];
    for (let at = 1; at < n - 1; at++) {
      const isApostrophe = codes[at] === APOSTROPHE || codes[at] === CURLY_APOSTROPHE;
      if (isApostrophe && isWord[at - 1] && isWord[at + 1]) within.push(at);
    }
    for (const at of within) isWord[at] = 1;
    // 4) Runs of words' characters, and signs with what belongs to them.
    const tokens = [];
    for (let start = 0; start < n; ) {
      if (!isWord[start] && !isSeen[start]) {
        start++;
        continue;
      }
      let stop = start + 1;
      if (isWord[start]) while (stop < n && isWord[stop]) stop++;
      else while (stop < n && joins[stop] && !isWord[stop] && isSeen[stop]) stop++;
      tokens.push({ word: textOf(codes, start, stop), start: start - 1, stop: stop - 1 });
      start = stop;
    }
    return tokens;
  }

  /**
   * Return which characters belong to the one before.
   * @param {number[]} codes
   * @returns {Uint8Array}
   */
  #joins(codes) {
    const { unicode } = this;
    const { mark, link, alone, stacker } = unicode.bit;
    const n = codes.length;
    const joins = new Uint8Array(n);
    // 1) Marks, and consonants under others.
    let hasLink = false;
    for (let at = 0; at < n; at++) {
      const isUnder = unicode.is(codes[at - 1], stacker) && unicode.is(codes[at], alone);
      joins[at] = unicode.is(codes[at], mark) || isUnder ? 1 : 0;
      hasLink ||= unicode.is(codes[at], link);
    }
    if (!hasLink) return joins;
    // 2) What links join, in the runs of such characters that have a link.
    for (let start = 0; start < n; ) {
      let stop = start;
      let isLinked = false;
      while (stop < n && unicode.is(codes[stop], mark | link | alone)) {
        isLinked ||= unicode.is(codes[stop], link);
        stop++;
      }
      if (isLinked) {
        // The first character of a cluster may stand before the run.
        const from = Math.max(start - 1, 0);
        unicode.clusterJoins(codes, from, stop).forEach((joined, at) => {
          if (joined) joins[from + at] = 1;
        });
      }
      start = Math.max(stop, start + 1);
    }
    return joins;
  }

  /**
   * Return characters with apostrophes for backticks between the letters of a word.
   * @param {number[]} codes
   * @returns {number[]}
   */
  #withApostrophes(codes) {
    const { word } = this.unicode.bit;
    return codes.map((code, at) => {
      const isBetween =
        code === BACKTICK &&
        this.unicode.is(codes[at - 1], word) &&
        this.unicode.is(codes[at + 1], word);
      return isBetween ? APOSTROPHE : code;
    });
  }

  /**
   * Return whether a word has character n-grams, unlike signs, emoji and Chinese characters.
   * @param {number[]} codes
   * @param {number} longest words of more characters have none
   * @returns {boolean}
   */
  isSpelled(codes, longest) {
    if (codes.length > longest) return false;
    const { word, alone } = this.unicode.bit;
    if (!codes.some((code) => this.unicode.is(code, word))) return false;
    const mayBeSign = this.unicode.is(codes[0], alone) || codes.includes(KEYCAP);
    return !(mayBeSign && this.unicode.clusterEdges(codes).length === 2);
  }
}

/**
 * Return which of the tokens come after a new line that comes after the token before.
 * @param {number[]} codes
 * @param {Token[]} tokens
 * @returns {boolean[]}
 */
export function afterNewLines(codes, tokens) {
  let last = -1; // the last new line
  let at = 0;
  return tokens.map(({ start }, number) => {
    for (; at <= start; at++) if (codes[at] === NEW_LINE) last = at;
    return number > 0 && last >= tokens[number - 1].start;
  });
}

/**
 * Return whether all characters are those of ASCII.
 * @param {number[]} codes
 * @returns {boolean}
 */
function isAscii(codes) {
  return codes.every((code) => code < 0x80);
}

/**
 * Return characters of ASCII in lower case.
 * @param {number[]} codes
 * @returns {number[]}
 */
function lowered(codes) {
  return codes.map((code) => (code >= 0x41 && code <= 0x5a ? code + 0x20 : code));
}

/**
 * Return how many of ascending numbers are no larger than a limit.
 * @param {number[]} numbers
 * @param {number} limit
 * @returns {number}
 */
function countUpTo(numbers, limit) {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
