// What a character is, which characters belong together, and normal forms.
//
// Everything is read from the tables of the model's file, which are those of the Python that wrote
// it: browsers have other versions of Unicode, and other rules.

/**
 * What some characters become.
 * @typedef {object} CharacterTable
 * @property {number[][]} runs number of other characters before, number of characters
 * @property {string} become a line for each
 */

/**
 * @typedef {object} Tables
 * @property {string[]} properties names of bits, from the lowest on
 * @property {string[]} clusterClasses names of the classes 1, 2, ...
 * @property {number[][]} kinds bits, cluster class and combining class
 * @property {number[][]} runs number of characters, number of their kind
 * @property {CharacterTable} folded
 * @property {CharacterTable} plain
 * @property {CharacterTable} decomposed
 * @property {string} notComposed
 */

const N_CODE_POINTS = 0x110000;
const ZERO_WIDTH_JOINER = 0x200d;
const EMOJI_SELECTOR = 0xfe0f;
const SMALL_I = 0x69;
const DOT_ABOVE = 0x307; // on an i it is what the Turkish capital becomes

// The syllables of Hangul, which are composed by arithmetic.
const SYLLABLES = 0xac00;
const LEADS = 0x1100;
const VOWELS = 0x1161;
const TRAILS = 0x11a7; // one before the first
const N_VOWELS = 21;
const N_TRAILS = 28;
const N_SYLLABLES = 19 * N_VOWELS * N_TRAILS;

/**
 * Return the code points of a text.
 * @param {string} text
 * @returns {number[]}
 */
export function codePoints(text) {
  const codes = [];
  for (let at = 0; at < text.length; at++) {
    const code = /** @type {number} */ (text.codePointAt(at));
    codes.push(code);
    if (code > 0xffff) at++;
  }
  return codes;
}

/**
 * Return the text of some code points.
 * @param {ArrayLike<number>} codes
 * @param {number} [start]
 * @param {number} [stop]
 * @returns {string}
 */
export function textOf(codes, start = 0, stop = codes.length) {
  let text = "";
  for (let at = start; at < stop; at++) text += String.fromCodePoint(codes[at]);
  return text;
}

/** The characters of Unicode, each given by its code point. */
export class Unicode {
  /** @param {Tables} tables */
  constructor(tables) {
    /** @type {Record<string, number>} the bit of each property */
    this.bit = {};
    tables.properties.forEach((name, number) => {
      this.bit[name] = 1 << number;
    });
    /** @type {Record<string, number>} the number of each cluster class */
    this.clusterClass = {};
    tables.clusterClasses.forEach((name, number) => {
      this.clusterClass[name] = number + 1;
    });
    this.bits = tables.kinds.map((kind) => kind[0]);
    this.classes = tables.kinds.map((kind) => kind[1]);
    this.combiningClasses = tables.kinds.map((kind) => kind[2]);
    this.kindOf = new Uint16Array(N_CODE_POINTS);
    let start = 0;
    for (const [length, kind] of tables.runs) {
      this.kindOf.fill(kind, start, start + length);
      start += length;
    }
    this.folded = byCodePoint(tables.folded);
    this.plain = byCodePoint(tables.plain);
    this.decomposed = byCodePoint(tables.decomposed);
    /** @type {Map<number, Map<number, number>>} by the first and the second character */
    this.composed = new Map();
    const notComposed = new Set(codePoints(tables.notComposed));
    for (const [code, parts] of this.decomposed) {
      if (parts.length !== 2 || notComposed.has(code)) continue;
      const [first, second] = parts;
      const byFirst = this.composed.get(first) ?? new Map();
      this.composed.set(first, byFirst.set(second, code));
    }
  }

  /**
   * Return whether a character has one of the properties in `bits`.
   * @param {number} code
   * @param {number} bits
   * @returns {boolean}
   */
  is(code, bits) {
    return (this.bits[this.kindOf[code]] & bits) !== 0;
  }

  /**
   * Return whether a character is a letter or a digit.
   * @param {string} character
   * @returns {boolean}
   */
  isAlphanumeric(character) {
    const code = /** @type {number} */ (character.codePointAt(0));
    return character !== "_" && this.is(code, this.bit.word);
  }

  /**
   * Return for each character from `start` to `stop` whether it belongs to the grapheme cluster of
   * the one before: by Unicode Standard Annex 29, and all marks to the letter before them.
   * @param {ArrayLike<number>} codes
   * @param {number} [start]
   * @param {number} [stop]
   * @returns {Uint8Array}
   */
  clusterJoins(codes, start = 0, stop = codes.length) {
    const joins = new Uint8Array(stop - start);
    const classes = this.clusterClass;
    const { Extend, ZWJ, Regional_Indicator: Flag } = classes;
    let before = -1; // the class of the character before
    let nFlags = 0; // letters of flags up to here
    let afterPictograph = false; // and what extends it
    let pictographJoins = false; // after a joiner
    let consonantJoins = false; // after a link, and what extends it
    for (let at = start; at < stop; at++) {
      const code = codes[at];
      const bits = this.bits[this.kindOf[code]];
      const kind = this.classes[this.kindOf[code]];
      const isPictograph = (bits & this.bit.pictograph) !== 0;
      const isConsonant = (bits & this.bit.conjunctConsonant) !== 0;
      if (before >= 0) {
        const joined =
          this.#joins(before, kind) ||
          (pictographJoins && isPictograph) ||
          (consonantJoins && isConsonant) ||
          (kind === Flag && nFlags % 2 === 1) ||
          (bits & this.bit.combining) !== 0;
        joins[at - start] = joined ? 1 : 0;
      }
      // What the next character joins.
      nFlags = kind === Flag ? nFlags + 1 : 0;
      pictographJoins = afterPictograph && kind === ZWJ;
      afterPictograph = isPictograph || (afterPictograph && kind === Extend);
      const isLinker = (bits & this.bit.conjunctLinker) !== 0;
      const isExtension = (bits & this.bit.conjunctExtend) !== 0;
      consonantJoins = isLinker || (consonantJoins && isExtension);
      before = kind;
    }
    return joins;
  }

  /**
   * Return whether a character joins the one before, by their cluster classes alone.
   * @param {number} before
   * @param {number} after
   * @returns {boolean}
   */
  #joins(before, after) {
    const { CR, LF, Control, Extend, ZWJ, Prepend, SpacingMark, L, V, T, LV, LVT } =
      this.clusterClass;
    if (before === CR && after === LF) return true;
    if (before === CR || before === LF || before === Control) return false;
    if (after === CR || after === LF || after === Control) return false;
    if (after === Extend || after === ZWJ || after === SpacingMark) return true;
    if (before === Prepend) return true;
    if (before === L) return after === L || after === V || after === LV || after === LVT;
    if (before === LV || before === V) return after === V || after === T;
    return (before === LVT || before === T) && after === T;
  }

  /**
   * Return the starts of grapheme clusters, and at the end the number of characters.
   * @param {ArrayLike<number>} codes
   * @returns {number[]}
   */
  clusterEdges(codes) {
    const joins = this.clusterJoins(codes);
    const edges = [];
    for (let at = 0; at < joins.length; at++) if (!joins[at]) edges.push(at);
    edges.push(joins.length);
    return edges;
  }

  /**
   * Return characters without those that have no glyph, with a space between digits and numbers
   * such as ½, and the place of each in the original.
   * @param {number[]} codes
   * @returns {{codes: number[], places: number[]}}
   */
  visible(codes) {
    const { ignorable, pictograph, emojiModifier, number, digit } = this.bit;
    /** @type {number[]} */
    const kept = [];
    const places = [];
    for (let at = 0; at < codes.length; at++) {
      const code = codes[at];
      if (code === ZERO_WIDTH_JOINER) {
        const before = codes[at - 1];
        const isSelector = before === EMOJI_SELECTOR || this.is(before, emojiModifier);
        const joinsBefore =
          this.is(before, pictograph) || (isSelector && this.is(codes[at - 2], pictograph));
        if (!joinsBefore || !this.is(codes[at + 1], pictograph)) continue;
      } else if (this.is(code, ignorable)) {
        continue;
      }
      const last = kept[kept.length - 1];
      const isApart =
        (this.is(last, digit) && this.is(code, number)) ||
        (this.is(last, number) && this.is(code, digit));
      if (isApart) {
        kept.push(0x20);
        places.push(at);
      }
      kept.push(code);
      places.push(at);
    }
    return { codes: kept, places };
  }

  /**
   * Return characters in the form in which texts are compared: in lower case, if wanted, with plain
   * signs, letters and marks composed.
   * @param {number[]} codes
   * @param {boolean} lowercase
   * @returns {number[]}
   */
  inForm(codes, lowercase) {
    // 1) Case is folded, and a dotted i is an i.
    let folded = codes;
    if (lowercase) {
      folded = [];
      let before = -1;
      for (const code of mapped(codes, this.folded)) {
        const isDotOfI = code === DOT_ABOVE && before === SMALL_I;
        if (!isDotOfI) folded.push(code);
        before = isDotOfI ? -1 : code;
      }
    }
    // 2) Characters that look alike are one.
    const plain = [];
    for (const code of folded) {
      const replaced = this.plain.get(code);
      if (!replaced) plain.push(code);
      else if (lowercase) plain.push(...mapped(replaced, this.folded));
      else plain.push(...replaced);
    }
    // 3) Letters and marks.
    return this.composedForm(plain);
  }

  /**
   * Return characters with letters and marks composed: the normal form C of Unicode.
   * @param {number[]} codes
   * @returns {number[]}
   */
  composedForm(codes) {
    // 1) Decomposed, with the marks of each letter in order.
    /** @type {number[]} */
    const parts = [];
    for (const code of codes) this.#decompose(code, parts);
    for (let at = 1; at < parts.length; at++) {
      const code = parts[at];
      const rank = this.#combiningClass(code);
      let to = at;
      while (rank && to && this.#combiningClass(parts[to - 1]) > rank) {
        parts[to] = parts[to - 1];
        to--;
      }
      parts[to] = code;
    }
    // 2) Composed, each with the last letter unless a mark of the same class is between.
    /** @type {number[]} */
    const result = [];
    let letter = -1; // its place in the result
    let lastRank = 0;
    for (const code of parts) {
      const rank = this.#combiningClass(code);
      const isFree = letter >= 0 && (letter === result.length - 1 || lastRank < rank);
      const composed = isFree ? this.#compose(result[letter], code) : undefined;
      if (composed !== undefined) {
        result[letter] = composed;
        continue;
      }
      result.push(code);
      lastRank = rank;
      if (!rank) letter = result.length - 1;
    }
    return result;
  }

  /**
   * Add the decomposition of a character to a list.
   * @param {number} code
   * @param {number[]} parts
   */
  #decompose(code, parts) {
    const syllable = code - SYLLABLES;
    const decomposed = this.decomposed.get(code);
    if (decomposed) {
      for (const part of decomposed) this.#decompose(part, parts);
    } else if (syllable >= 0 && syllable < N_SYLLABLES) {
      const pair = Math.floor(syllable / N_TRAILS);
      parts.push(LEADS + Math.floor(pair / N_VOWELS), VOWELS + (pair % N_VOWELS));
      if (syllable % N_TRAILS) parts.push(TRAILS + (syllable % N_TRAILS));
    } else {
      parts.push(code);
    }
  }

  /**
   * Return the character that two characters make, if they make one.
   * @param {number} first
   * @param {number} second
   * @returns {number | undefined}
   */
  #compose(first, second) {
    const lead = first - LEADS;
    const vowel = second - VOWELS;
    if (lead >= 0 && lead < 19 && vowel >= 0 && vowel < N_VOWELS) {
      return SYLLABLES + (lead * N_VOWELS + vowel) * N_TRAILS;
    }
    const syllable = first - SYLLABLES;
    const trail = second - TRAILS;
    const isOpen = syllable >= 0 && syllable < N_SYLLABLES && syllable % N_TRAILS === 0;
    if (isOpen && trail > 0 && trail < N_TRAILS) return first + trail;
    return this.composed.get(first)?.get(second);
  }

  /**
   * Return the canonical combining class of a character, 0 for a letter.
   * @param {number} code
   * @returns {number}
   */
  #combiningClass(code) {
    return this.combiningClasses[this.kindOf[code]];
  }
}

/**
 * Return a table of characters by code points.
 * @param {CharacterTable} table
 * @returns {Map<number, number[]>}
 */
function byCodePoint({ runs, become }) {
  /** @type {Map<number, number[]>} */
  const map = new Map();
  const lines = become.split("\n");
  let code = 0;
  for (const [before, length] of runs) {
    code += before;
    for (const stop = code + length; code < stop; code++) {
      map.set(code, codePoints(lines[map.size]));
    }
  }
  return map;
}

/**
 * Return characters, each replaced by what a table has for it.
 * @param {number[]} codes
 * @param {Map<number, number[]>} table
 * @returns {number[]}
 */
function mapped(codes, table) {
  const result = [];
  for (const code of codes) {
    const replaced = table.get(code);
    if (replaced) result.push(...replaced);
    else result.push(code);
  }
  return result;
}
