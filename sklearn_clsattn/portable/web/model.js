// The model: what each word and word pair weighs in a text, and the decisions.

import { SortedTerms } from "./model_file.js";
import { afterNewLines, TextReader } from "./texts.js";
import { codePoints, textOf, Unicode } from "./unicode.js";

/** @typedef {import("./model_file.js").Header} Header */
/** @typedef {import("./model_file.js").Numbers} Numbers */
/** @typedef {import("./texts.js").Token} Token */

/**
 * A word or word n-gram, with its character n-grams if it has some.
 * @typedef {object} Unit
 * @property {number} logMass the logarithm of its attention, for a weight of 1
 * @property {Float64Array} values what a unit of attention on it adds to each decision
 * @property {Float64Array | null} ownValues the same without character n-grams, if it has some and
 *   is in the vocabulary
 * @property {boolean} isKnown whether it is in the vocabulary
 */

/**
 * Where a unit stands in a text.
 * @typedef {object} Occurrence
 * @property {number} first number of its first token
 * @property {number} length number of tokens
 * @property {number} gate
 */

/**
 * A unit of a text.
 * @typedef {object} TextUnit
 * @property {string} name
 * @property {Unit} unit
 * @property {number} weight
 * @property {Occurrence[]} occurrences
 */

/**
 * A decision as a sum: what each unit of a text adds.
 * @typedef {object} Decision
 * @property {Float64Array} decisions one for each class, or for the second of two
 * @property {Float64Array} attention of each unit
 * @property {number} clsAttention what goes to no word
 */

const BREAK = /[.!?;:,\n]/; // in a word after which there is no word before
const MOST_REMEMBERED = 300_000; // units

/** A model of texts. */
export class Model {
  /**
   * @param {Header} header
   * @param {Record<string, Numbers>} arrays
   */
  constructor(header, arrays) {
    this.header = header;
    this.reader = new TextReader(new Unicode(header.unicode));
    this.terms = new SortedTerms(header.terms, arrays.sharedOfTerms, header.block);
    this.ngrams = new SortedTerms(header.characterNgrams, arrays.sharedOfCharacters, header.block);
    this.nTerms = arrays.sharedOfTerms.length;
    this.hasCharacters = arrays.sharedOfCharacters.length > 0;
    this.intercept = Float64Array.from(header.intercept);
    this.scores = arrays.scores;
    this.values = header.intercept.map((_, output) => arrays[`values${output}`]);
    this.startScores = arrays.startScores;
    this.endScores = arrays.endScores;
    this.nCells = arrays.startScores.length / (header.ngramRange[1] - header.ngramRange[0] + 1);
    this.stopWords = new Set(header.stopWords);
    /** @type {Map<string, number>} */
    this.previousScores = new Map();
    header.previousWords.forEach((word, number) => {
      if (!BREAK.test(word)) this.previousScores.set(word, arrays.previousScores[number]);
    });
    this.clsLogit = header.clsWeight ? header.clsScore + Math.log(header.clsWeight) : -Infinity;
    /** @type {Map<string, Unit | null>} */
    this.units = new Map();
  }

  /**
   * Return the decisions for a text.
   * @param {string} text
   * @returns {Float64Array}
   */
  decisions(text) {
    const codes = this.reader.normalized(codePoints(text), this.header.lowercase);
    const tokens = this.reader.tokens(codes).filter(({ word }) => !this.stopWords.has(word));
    return this.decide(this.unitsOf(codes, tokens)).decisions;
  }

  /**
   * Return the units of a text in its normal form, with their weights.
   * @param {number[]} codes
   * @param {Token[]} tokens
   * @returns {TextUnit[]}
   */
  unitsOf(codes, tokens) {
    const [shortest, longest] = this.header.ngramRange;
    const isAfterNewLine = afterNewLines(codes, tokens);
    const n = tokens.length;
    /** @type {Map<string, TextUnit>} */
    const units = new Map();
    for (let length = this.hasCharacters ? 1 : shortest; length <= longest; length++) {
      if (length > 1 && length < shortest) continue;
      const order = Math.max(length - shortest, 0);
      for (let first = 0; first + length <= n; first++) {
        let name = tokens[first].word;
        for (let at = first + 1; at < first + length; at++) name += ` ${tokens[at].word}`;
        const unit = this.unit(name, length === 1);
        if (unit === null) continue;
        const before = isAfterNewLine[first] || !first ? "" : tokens[first - 1].word;
        const gate = this.#gate(order, first, n, before);
        const known = units.get(name);
        if (known) known.occurrences.push({ first, length, gate });
        else units.set(name, { name, unit, weight: 0, occurrences: [{ first, length, gate }] });
      }
    }
    const list = [...units.values()];
    weigh(list);
    return list;
  }

  /**
   * Return the gate of an occurrence, by its position and the word before.
   * @param {number} order
   * @param {number} position
   * @param {number} n number of tokens
   * @param {string} before
   * @returns {number}
   */
  #gate(order, position, n, before) {
    const { gatePower, largestGateScore } = this.header;
    let score =
      this.startScores[order * this.nCells + this.#cell(position + 1)] +
      this.endScores[order * this.nCells + this.#cell(n - position)];
    score += this.previousScores.get(before) ?? 0;
    const clipped = Math.min(Math.max(score, -largestGateScore), largestGateScore);
    return Math.exp(gatePower * clipped);
  }

  /**
   * Return the cell of a distance: 1, 2 to 3, 4 to 7, and so on.
   * @param {number} distance
   * @returns {number}
   */
  #cell(distance) {
    return Math.min(31 - Math.clz32(distance), this.nCells - 1);
  }

  /**
   * Return a word or word n-gram, null for one of which nothing is known.
   * @param {string} name
   * @param {boolean} isWord
   * @returns {Unit | null}
   */
  unit(name, isWord) {
    const known = this.units.get(name);
    if (known !== undefined) return known;
    if (this.units.size > MOST_REMEMBERED) this.units.clear();
    const unit = this.#newUnit(name, isWord);
    this.units.set(name, unit);
    return unit;
  }

  /**
   * Return a unit from its own token and those of its character n-grams.
   * @param {string} name
   * @param {boolean} isWord
   * @returns {Unit | null}
   */
  #newUnit(name, isWord) {
    // 1) The tokens, and their weights.
    const own = this.terms.find(name);
    /** @type {Map<number, number>} */
    const weights = isWord ? this.#spelled(name) : new Map();
    const hasCharacters = weights.size > 0;
    const tokens = [...weights.keys()];
    const tokenWeights = [...weights.values()];
    if (own >= 0) {
      tokens.unshift(own);
      tokenWeights.unshift(1);
    }
    if (!tokens.length) return null;
    // 2) Their shares of the unit's attention.
    const logits = tokens.map((token, at) => Math.log(tokenWeights[at]) + this.scores[token]);
    const { shares, logMass } = softmax(logits, -Infinity);
    // 3) The mean of their values.
    const values = new Float64Array(this.values.length);
    const ownValues = hasCharacters && own >= 0 ? new Float64Array(values.length) : null;
    this.values.forEach((column, output) => {
      tokens.forEach((token, at) => {
        values[output] += shares[at] * column[token];
      });
      if (ownValues) ownValues[output] = shares[0] * column[own];
    });
    return { logMass, values, ownValues, isKnown: own >= 0 };
  }

  /**
   * Return the tokens of a word's character n-grams, with their weights.
   * @param {string} word
   * @returns {Map<number, number>}
   */
  #spelled(word) {
    /** @type {Map<number, number>} */
    const weights = new Map();
    const { characters, characterWeight, longestSpelled } = this.header;
    const codes = codePoints(word);
    if (!characters || !this.hasCharacters) return weights;
    if (!this.reader.isSpelled(codes, longestSpelled)) return weights;
    // 1) How often each occurs; a shorter word is an n-gram itself.
    const [shortest, longest] = characters;
    const spaced = [0x20, ...codes, 0x20];
    /** @type {Map<number, number>} */
    const counts = new Map();
    const count = (/** @type {string} */ ngram) => {
      const number = this.ngrams.find(ngram);
      if (number >= 0) counts.set(number, (counts.get(number) ?? 0) + 1);
    };
    if (spaced.length < shortest) count(textOf(spaced));
    for (let length = shortest; length <= longest; length++) {
      for (let start = 0; start + length <= spaced.length; start++) {
        count(textOf(spaced, start, start + length));
      }
    }
    // 2) The weights, in single precision as in Python.
    for (const [number, times] of counts) {
      weights.set(this.nTerms + number, Math.fround(times * characterWeight));
    }
    return weights;
  }

  /**
   * Return the decisions for the units of a text.
   * @param {TextUnit[]} units
   * @returns {Decision}
   */
  decide(units) {
    const logits = units.map(({ unit, weight }) => unit.logMass + Math.log(weight));
    const { shares, rest } = softmax(logits, this.clsLogit);
    const decisions = Float64Array.from(this.intercept);
    units.forEach(({ unit }, at) => {
      for (let output = 0; output < decisions.length; output++) {
        decisions[output] += shares[at] * unit.values[output];
      }
    });
    return { decisions, attention: shares, clsAttention: rest };
  }

  /**
   * Return the probability of each class, or of each of several labels.
   * @param {Float64Array} decisions
   * @returns {number[]}
   */
  probabilities(decisions) {
    if (this.header.severalLabels) return Array.from(decisions, sigmoid);
    if (decisions.length === 1) return [sigmoid(-decisions[0]), sigmoid(decisions[0])];
    return Array.from(softmax(Array.from(decisions), -Infinity).shares);
  }

  /**
   * Return the numbers of the predicted classes: one, or those of several labels.
   * @param {Float64Array} decisions
   * @returns {number[]}
   */
  predicted(decisions) {
    if (this.header.severalLabels) {
      return Array.from(decisions.keys()).filter((number) => decisions[number] > 0);
    }
    if (decisions.length === 1) return [decisions[0] > 0 ? 1 : 0];
    return [indexOfLargest(decisions)];
  }
}

/**
 * Set the weights of a text's units: 1 + ln c times the mean gate of its c occurrences, in units in
 * which the gates do not change their sum. In single precision, as in Python.
 * @param {TextUnit[]} units
 */
function weigh(units) {
  const { fround } = Math;
  let total = 0;
  let totalWithoutGates = 0;
  for (const one of units) {
    let gates = 0;
    for (const { gate } of one.occurrences) gates = fround(gates + fround(gate));
    const count = one.occurrences.length;
    const damped = fround(1 + fround(Math.log(count)));
    one.weight = fround(fround(damped / count) * gates);
    total += one.weight;
    totalWithoutGates += damped;
  }
  const scale = fround(totalWithoutGates / total);
  for (const one of units) one.weight = fround(one.weight * scale);
}

/**
 * Return the shares of masses in their sum, given their logarithms and that of the rest.
 * @param {number[]} logits
 * @param {number} restLogit
 * @returns {{shares: Float64Array, rest: number, logMass: number}}
 */
function softmax(logits, restLogit) {
  let largest = restLogit;
  for (const logit of logits) largest = Math.max(largest, logit);
  if (largest === -Infinity) largest = 0;
  const shares = Float64Array.from(logits, (logit) => Math.exp(logit - largest));
  const restMass = Math.exp(restLogit - largest);
  let total = restMass;
  for (const mass of shares) total += mass;
  if (total === 0) return { shares, rest: 0, logMass: -Infinity };
  for (let at = 0; at < shares.length; at++) shares[at] /= total;
  return { shares, rest: restMass / total, logMass: Math.log(total) + largest };
}

/**
 * Return the probability with some log-odds.
 * @param {number} logOdds
 * @returns {number}
 */
function sigmoid(logOdds) {
  return logOdds >= 0 ? 1 / (1 + Math.exp(-logOdds)) : Math.exp(logOdds) / (1 + Math.exp(logOdds));
}

/**
 * Return the place of the largest number, of several the first.
 * @param {ArrayLike<number>} numbers
 * @returns {number}
 */
export function indexOfLargest(numbers) {
  let best = 0;
  for (let at = 1; at < numbers.length; at++) if (numbers[at] > numbers[best]) best = at;
  return best;
}
