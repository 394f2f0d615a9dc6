// What each word of a text adds to the decisions, and which words to delete.

import { deleteSpans, EditableText } from "./edited_text.js";
import { indexOfLargest } from "./model.js";
import { codePoints } from "./unicode.js";
import { fewestWords } from "./word_search.js";

/** @typedef {import("./model.js").Model} Model */
/** @typedef {import("./types.js").Deletion} Deletion */
/** @typedef {import("./types.js").ExplainedToken} ExplainedToken */
/** @typedef {import("./types.js").Span} Span */

const AHEAD = 2e-9; // of the predicted class, where classes are level

/** A text, and what a model makes of it. */
export class Explanation {
  /**
   * @param {Model} model
   * @param {string} text
   */
  constructor(model, text) {
    this.model = model;
    this.text = text;
    this.codes = codePoints(text);
    const { reader, header } = model;
    const form = reader.aligned(this.codes, header.lowercase);
    const everyToken = reader.tokens(form.codes);
    const tokens = everyToken.filter(({ word }) => !model.stopWords.has(word));
    const ignored = everyToken.filter(({ word }) => model.stopWords.has(word));
    const units = model.unitsOf(form.codes, tokens);
    const decision = model.decide(units);
    /** the words of the text, and those that the model ignores, in characters */
    this.words = reader.spansInOriginal(this.codes, form, tokens);
    this.ignored = reader.spansInOriginal(this.codes, form, ignored);
    this.decisions = decision.decisions;
    this.intercept = Array.from(model.intercept);
    this.probabilities = model.probabilities(decision.decisions);
    this.predicted = model.predicted(decision.decisions);
    this.clsAttention = decision.clsAttention;
    /** @type {ExplainedToken[]} */
    this.tokens = units.map(({ name, unit, weight, occurrences }, at) => {
      const attention = decision.attention[at];
      const gates = occurrences.reduce((sum, { gate }) => sum + gate, 0);
      const { ownValues } = unit;
      return {
        name,
        weight,
        attention,
        contributions: Array.from(unit.values, (value) => attention * value),
        ownContributions: ownValues && Array.from(ownValues, (value) => attention * value),
        isKnown: unit.isKnown,
        occurrences: occurrences.map(({ first, length, gate }) => {
          return { first, length, share: gate / gates };
        }),
      };
    });
    this.tokens.sort(compareTokens);
  }

  /**
   * Return the decisions for the text without all words of a token.
   * @param {ExplainedToken} token
   * @returns {Float64Array}
   */
  decisionsWithout(token) {
    /** @type {Set<number>} */
    const words = new Set();
    for (const { first, length } of token.occurrences) {
      for (let word = first; word < first + length; word++) words.add(word);
    }
    const spans = [...words].sort((one, other) => one - other).map((word) => this.words[word]);
    return this.model.decisions(this.without(spans));
  }

  /**
   * Return the text without some spans of it, which are in order.
   * @param {Span[]} spans
   * @returns {string}
   */
  without(spans) {
    return deleteSpans(this.codes, spans, this.model.reader);
  }

  /**
   * Return the fewest words whose deletion changes the prediction, or that of one of several
   * labels.
   * @param {{label?: number, timeLimit?: number}} [options] the time limit is in seconds
   * @returns {Deletion}
   */
  fewestWords({ label = -1, timeLimit = 10 } = {}) {
    const text = new EditableText(this.text, this.model.reader);
    const present = indexOfLargest(this.#scores(this.decisions, label));
    const margins = (/** @type {number[][]} */ choices) =>
      choices.map((choice) => {
        const decisions = this.model.decisions(text.without(choice));
        return -this.#lead(decisions, present, label);
      });
    const suspicion = this.#suspicion(text, present, label);
    const nWords = text.words.length;
    const result = fewestWords(margins, nWords, text.nOccurrences, suspicion, timeLimit);
    const words = result.words ?? [];
    /** @type {number | null} */
    let atLeast = result.nTried + 1;
    if (result.words) atLeast = Math.min(atLeast, words.length);
    else if (result.nTried === nWords) atLeast = null; // all sets were tried
    const editedText = text.without(words);
    const decisions = this.model.decisions(editedText);
    const after = indexOfLargest(this.#scores(decisions, label));
    const probabilities = this.model.probabilities(decisions);
    let probability = probabilities[after];
    if (label >= 0) probability = after ? probabilities[label] : 1 - probabilities[label];
    return {
      found: result.words !== null,
      words: words.map((number) => text.words[number].name),
      spans: text.spansOf(words),
      editedText,
      before: present,
      after,
      probability,
      atLeast,
    };
  }

  /**
   * Return the scores of the classes, or of having a label not and having it.
   * @param {Float64Array} decisions
   * @param {number} label
   * @returns {number[]}
   */
  #scores(decisions, label) {
    if (label >= 0) return [0, decisions[label]];
    return decisions.length === 1 ? [0, decisions[0]] : Array.from(decisions);
  }

  /**
   * Return the lead of a class over the best other one; what is predicted is ahead.
   * @param {Float64Array} decisions
   * @param {number} number
   * @param {number} label
   * @returns {number}
   */
  #lead(decisions, number, label) {
    const scores = this.#scores(decisions, label);
    const winner = indexOfLargest(scores);
    const bestOther = Math.max(...scores.filter((_, at) => at !== winner));
    scores[winner] = Math.max(scores[winner], bestOther + AHEAD);
    return scores[number] - Math.max(...scores.filter((_, at) => at !== number));
  }

  /**
   * Return the part of each word in the lead of the predicted class: the contributions of the
   * tokens that begin in it.
   * @param {EditableText} text
   * @param {number} present
   * @param {number} label
   * @returns {number[]}
   */
  #suspicion(text, present, label) {
    // 1) What each token adds to the lead.
    const scores = this.#scores(this.decisions, label);
    scores[present] = -Infinity;
    const rival = indexOfLargest(scores);
    const leads = this.tokens.map(({ contributions }) => {
      const byClass = this.#scores(Float64Array.from(contributions), label);
      return byClass[present] - byClass[rival];
    });
    // 2) The sums over the tokens that begin in each word.
    const sums = new Float64Array(this.codes.length + 1);
    this.tokens.forEach(({ occurrences }, at) => {
      for (const { first, share } of occurrences) {
        sums[this.words[first][0] + 1] += share * leads[at];
      }
    });
    for (let at = 1; at < sums.length; at++) sums[at] += sums[at - 1];
    return text.words.map(({ spans }) =>
      spans.reduce((sum, [start, stop]) => sum + sums[stop] - sums[start], 0),
    );
  }
}

/**
 * Return which of two tokens comes first: those of the vocabulary in alphabetical order.
 * @param {ExplainedToken} one
 * @param {ExplainedToken} other
 * @returns {number}
 */
function compareTokens(one, other) {
  if (one.isKnown !== other.isKnown) return one.isKnown ? -1 : 1;
  if (!one.isKnown || one.name === other.name) return 0;
  return one.name < other.name ? -1 : 1;
}
