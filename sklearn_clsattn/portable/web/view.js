// The content of one text's explanation for one class, in sentences and numbers.
//
// It is what `explain` shows in Python: the same order, names and rounding.

import {
  largestOf,
  level,
  percent,
  roundsToNothing,
  signed,
  tokenText,
  weightText,
} from "./formatting.js";
import { indexOfLargest } from "./model.js";
import { textOf } from "./unicode.js";

/** @typedef {import("./explanation.js").Deletion} Deletion */
/** @typedef {import("./explanation.js").Explanation} Explanation */

/**
 * A token of the text: numbers for the class shown.
 * @typedef {object} ShownToken
 * @property {number} number of the token in the explanation
 * @property {string} name
 * @property {number} weight
 * @property {number} attention
 * @property {number} contribution
 * @property {number | null} own without its character n-grams
 * @property {boolean} isKnown
 */

/**
 * The contributions of one sign.
 * @typedef {object} Side
 * @property {number} sign
 * @property {string} label the class that they favour
 * @property {number} total of all tokens of this sign
 * @property {ShownToken[]} tokens the strongest, to be listed
 * @property {number} more the number of others
 * @property {number} moreTotal their sum
 */

/**
 * The tokens to name of one sign, as the subject of a clause, and the clause's end.
 * @typedef {object} Reason
 * @property {number} sign
 * @property {ShownToken[]} tokens
 * @property {string} verb
 * @property {string} label
 */

/**
 * A segment of the text, all of whose characters belong to the same tokens.
 * @typedef {object} Segment
 * @property {string} text
 * @property {number} start in characters
 * @property {number} stop
 * @property {number[]} tokens
 * @property {number} contribution
 * @property {number} attention
 * @property {boolean} isWord
 * @property {boolean} isIgnored
 */

/**
 * Which class is shown, and against which.
 * @typedef {object} ShownClasses
 * @property {number} k
 * @property {number} j -1 where there is only one other
 * @property {string} targetName
 * @property {string} otherName
 * @property {boolean} otherIsPredicted
 */

const TOP = 8; // tokens of each side that are listed
const MAX_REASONS = 3; // tokens of each side in a sentence
const MAX_CLASSES = 6; // to name
const SMALLEST_SHOWN = 0.0005; // probability of a class to name beyond the first two
const MAX_NAMED = 3; // deleted words in a sentence
const MAX_DELETED = 12; // deleted words to list
const NOISE = 1e-8; // contributions below are rounding
const FAINT = 0.05; // least contribution, in log-odds, that the strongest shade stands for

/** One text, explained for a class, perhaps against another. */
export class View {
  /**
   * @param {Explanation} explanation
   * @param {number} [target] the number of a class or label; by default the predicted class, the
   *   second of two, or the most probable label
   */
  constructor(explanation, target = -1) {
    this.explanation = explanation;
    const { header } = explanation.model;
    this.labels = header.labels;
    this.severalLabels = header.severalLabels;
    const shown = shownClasses(explanation, target);
    this.k = shown.k; // the class shown
    this.j = shown.j; // that it is compared with, of several
    this.targetName = shown.targetName;
    this.otherName = shown.otherName;
    this.isCompared = shown.j >= 0;
    this.isChosen = this.isCompared || this.severalLabels; // among several
    this.decisionName = this.isCompared ? `lead over ${this.otherName}` : "decision";
    // 1) The tokens.
    /** @type {ShownToken[]} */
    this.tokens = explanation.tokens.map((token, number) => ({
      number,
      name: token.name,
      weight: token.weight,
      attention: token.attention,
      contribution: this.#select(token.contributions),
      own: token.ownContributions && this.#select(token.ownContributions),
      isKnown: token.isKnown,
    }));
    this.start = this.#select(explanation.intercept);
    this.end = this.#select(Array.from(explanation.decisions));
    // 2) The text in segments, and the strongest shade.
    this.segments = this.#cut();
    this.largest = Math.max(FAINT, largestContribution(this.segments));
    // 3) The contributions of each sign, that for the predicted class first.
    this.plus = this.#side(1, this.targetName);
    this.minus = this.#side(-1, this.otherName);
    this.sides = shown.otherIsPredicted ? [this.minus, this.plus] : [this.plus, this.minus];
    this.listed = [...this.plus.tokens, ...this.minus.tokens];
    this.reasons = this.#reasons();
  }

  /**
   * Return the number for the class shown, of numbers for the decisions.
   * @param {number[]} numbers
   * @returns {number}
   */
  #select(numbers) {
    if (this.severalLabels) return numbers[this.k];
    if (numbers.length === 1) return (this.k ? 1 : -1) * numbers[0] + 0;
    return numbers[this.k] - numbers[this.j];
  }

  /**
   * Return the text as segments: its words, those that are ignored, and what is between. A token's
   * contribution is shared among its occurrences, and an n-gram's equally among its words.
   * @returns {Segment[]}
   */
  #cut() {
    const { codes, tokens, words } = this.explanation;
    // 1) What each word has of the tokens that it belongs to.
    const parts = words.map(([start, stop]) => ({
      start,
      stop,
      tokens: /** @type {Set<number>} */ (new Set()),
      contribution: 0,
      attention: 0,
    }));
    tokens.forEach(({ occurrences, attention }, number) => {
      for (const { first, length, share } of occurrences) {
        for (const part of parts.slice(first, first + length)) {
          part.tokens.add(number);
          part.contribution += (share / length) * this.tokens[number].contribution;
          part.attention += (share / length) * attention;
        }
      }
    });
    // 2) The segments; words that overlap, such as those of a ligature, are one.
    /** @type {Segment[]} */
    const segments = [];
    let end = 0;
    for (const part of parts) {
      let { start, contribution, attention } = part;
      segments.push(...this.#between(end, start));
      if (start < end) {
        const before = /** @type {Segment} */ (segments.pop());
        start = before.start;
        contribution += before.contribution;
        attention += before.attention;
        for (const number of before.tokens) part.tokens.add(number);
      }
      end = Math.max(end, part.stop);
      const numbers = [...part.tokens].sort(
        (one, other) =>
          Math.abs(this.tokens[other].contribution) - Math.abs(this.tokens[one].contribution),
      );
      const text = textOf(codes, start, end);
      const rest = { tokens: numbers, contribution, attention, isWord: true, isIgnored: false };
      segments.push({ text, start, stop: end, ...rest });
    }
    return [...segments, ...this.#between(end, codes.length)];
  }

  /**
   * Return a part of the text without words as segments: those that are ignored, and the others.
   * @param {number} start
   * @param {number} stop
   * @returns {Segment[]}
   */
  #between(start, stop) {
    const { codes, ignored } = this.explanation;
    /** @type {Segment[]} */
    const segments = [];
    const add = (/** @type {number} */ to, /** @type {boolean} */ isIgnored) => {
      if (to <= start) return;
      const text = textOf(codes, start, to);
      const nothing = { tokens: [], contribution: 0, attention: 0, isWord: false };
      segments.push({ text, start, stop: to, ...nothing, isIgnored });
      start = to;
    };
    for (const [first, last] of ignored) {
      if (first < start || first >= stop) continue;
      add(first, false);
      add(last, true);
    }
    add(stop, false);
    return segments;
  }

  /**
   * Return the tokens of one sign; those that round to nothing are not listed.
   * @param {number} sign
   * @param {string} label
   * @returns {Side}
   */
  #side(sign, label) {
    const largest = largestContribution(this.tokens);
    const strongest = this.#strongest(sign);
    const tokens = strongest
      .slice(0, TOP)
      .filter(({ contribution }) => !roundsToNothing(contribution, largest));
    const total = sumOf(strongest);
    const more = strongest.length - tokens.length;
    return { sign, label, total, tokens, more, moreTotal: total - sumOf(tokens) };
  }

  /**
   * Return the tokens of one sign, those with the largest contributions first.
   * @param {number} sign
   * @returns {ShownToken[]}
   */
  #strongest(sign) {
    const order = [...this.tokens].sort((one, other) => other.contribution - one.contribution);
    if (sign < 0) order.reverse();
    return order.filter(({ contribution }) => sign * contribution > NOISE);
  }

  /**
   * Return the strongest tokens of each side, those of the predicted class first.
   * @returns {Reason[]}
   */
  #reasons() {
    /** @type {Reason[]} */
    const reasons = [];
    for (const side of this.sides) {
      const { sign } = side;
      let { label } = side;
      const tokens = this.#namedTokens(sign);
      if (!tokens.length) continue;
      const verb = tokens.length === 1 ? "favours" : "favour";
      if (this.isCompared && !reasons.length) {
        label += ` over ${sign > 0 ? this.otherName : this.targetName}`;
      }
      reasons.push({ sign, tokens, verb, label });
    }
    return reasons;
  }

  /**
   * Return the strongest tokens of one sign that have no word in common.
   * @param {number} sign
   * @returns {ShownToken[]}
   */
  #namedTokens(sign) {
    const named = [];
    const words = new Set();
    const { unicode } = this.explanation.model.reader;
    for (const token of this.#strongest(sign)) {
      if (named.length === MAX_REASONS || !this.shade(token.contribution)) break;
      // A pair says nothing new beside its words, nor a word beside its pairs.
      const own = token.name
        .split(" ")
        .filter((word) => Array.from(word).every((one) => unicode.isAlphanumeric(one)));
      if (own.some((word) => words.has(word))) continue;
      named.push(token);
      for (const word of own) words.add(word);
    }
    return named;
  }

  /**
   * Return the level of shading of a contribution, from 0 to 5.
   * @param {number} contribution
   * @returns {number}
   */
  shade(contribution) {
    return level(contribution, this.largest);
  }

  /**
   * Return which class a word speaks for, and how much.
   * @param {Segment} segment
   * @returns {string}
   */
  effectOf({ tokens, contribution }) {
    if (!tokens.length) return "unknown to the model";
    if (Math.abs(contribution) <= NOISE) return "adds nothing";
    const name = contribution > 0 ? this.targetName : this.otherName;
    return `speaks for ${name} (${signed(Math.abs(contribution)).slice(1)})`;
  }

  /**
   * Return what a segment adds, and each of its tokens, a line each.
   * @param {Segment} segment
   * @returns {string[]}
   */
  linesOf(segment) {
    const tokens = segment.tokens.map((number) => this.tokens[number]);
    /** @type {string[]} */
    const lines = [];
    if (!tokens.length) return lines;
    const [first] = tokens;
    const isOne =
      tokens.length === 1 && signed(first.contribution) === signed(segment.contribution);
    if (!isOne) {
      const share = percent(segment.attention);
      lines.push(`here ${signed(segment.contribution)}, attention ${share}, of:`);
    }
    for (const { name, weight, contribution, attention, own, isKnown } of tokens) {
      let line = `${tokenText(name)} ×${weightText(weight)}: ${signed(contribution)}`;
      line += `, attention ${percent(attention)}`;
      if (!isKnown) line += "; unknown word, scored by its letters";
      else if (own !== null && own !== contribution) {
        line += `; ${signed(contribution - own)} of it by its characters`;
      }
      lines.push(line);
    }
    return lines;
  }

  /**
   * Return the decision for the text without a token, for the class shown.
   * @param {ShownToken} token
   * @returns {number}
   */
  decisionWithout(token) {
    const explained = this.explanation.tokens[token.number];
    return this.#select(Array.from(this.explanation.decisionsWithout(explained)));
  }

  /**
   * Return the sum's other terms, as sentences.
   * @returns {string[]}
   */
  remarks() {
    const remarks = [];
    const largest = largestContribution(this.tokens);
    for (const { label, more, moreTotal } of this.sides) {
      if (!more) continue;
      const adds = roundsToNothing(moreTotal, largest) ? "about 0" : signed(moreTotal);
      const number = `${more.toLocaleString("en")} other token${more > 1 ? "s" : ""}`;
      const total = more > 1 ? " in total" : "";
      remarks.push(`${number} favour${more > 1 ? "" : "s"} ${label} (${adds}${total}).`);
    }
    const { clsAttention } = this.explanation;
    if (clsAttention) remarks.push(`${percent(clsAttention)} of the attention goes to no word.`);
    return remarks;
  }

  /**
   * Return a statement on the fewest words whose deletion changes the prediction.
   * @param {Deletion} deletion
   * @returns {string}
   */
  statement(deletion) {
    const { found, words, atLeast, after, probability } = deletion;
    if (!found && atLeast === null) {
      return "Removing words does not change the prediction (all sets of words were tried).";
    }
    const tried = triedSets(atLeast);
    if (!found) return `No words were found whose removal changes the prediction.${tried}`;
    const odds = ` (${percent(probability)})`;
    let outcome = this.labels[after];
    if (this.severalLabels) outcome = after ? this.targetName : this.otherName;
    const becomes = `the prediction becomes ${outcome}${odds}.`;
    const more = words.length > 1 ? tried : "";
    if (words.length <= MAX_NAMED) return `Remove ${listed(words)} and ${becomes}${more}`;
    const shown = words.slice(0, MAX_DELETED).map((word) => `"${tokenText(word)}"`);
    const nMore = words.length - shown.length;
    const last = nMore ? `${nMore.toLocaleString("en")} more` : shown.pop();
    const sentence = `T${becomes.slice(1)}`;
    return `Remove these ${words.length} words: ${shown.join(", ")} and ${last}. ${sentence}${more}`;
  }

  /**
   * Return the numbers of the classes to name, and how many others there are.
   * @param {number[]} probabilities
   * @returns {{shown: number[], nMore: number}}
   */
  classesToName(probabilities) {
    const everyClass = [...probabilities.keys()];
    if (everyClass.length <= MAX_CLASSES) return { shown: everyClass, nMore: 0 };
    const likely = everyClass
      .sort((one, other) => probabilities[other] - probabilities[one])
      .slice(0, MAX_CLASSES);
    const kept = new Set([...likely.slice(0, 2), this.k]);
    const shown = likely.filter((at) => kept.has(at) || probabilities[at] >= SMALLEST_SHOWN);
    return { shown, nMore: probabilities.length - shown.length };
  }
}

/**
 * Return which class is shown, against which, and what they are called.
 * @param {Explanation} explanation
 * @param {number} target
 * @returns {ShownClasses}
 */
function shownClasses({ decisions, probabilities, predicted, model }, target) {
  const { classes, labels, notLabels, severalLabels } = model.header;
  const nameOf = (/** @type {number} */ number) =>
    typeof classes[number] === "string" ? labels[number] : `class ${labels[number]}`;
  if (severalLabels) {
    const k = target < 0 ? indexOfLargest(probabilities) : target;
    const names = { targetName: labels[k], otherName: notLabels[k] };
    return { k, j: -1, ...names, otherIsPredicted: decisions[k] <= 0 };
  }
  const [winner] = predicted;
  if (classes.length === 2) {
    const k = target < 0 ? 1 : target;
    const names = { targetName: nameOf(k), otherName: nameOf(1 - k) };
    return { k, j: -1, ...names, otherIsPredicted: winner !== k };
  }
  const k = target < 0 ? winner : target;
  const others = Array.from(decisions, (one, at) => (at === winner ? -Infinity : one));
  const j = k === winner ? indexOfLargest(others) : winner;
  const names = { targetName: nameOf(k), otherName: nameOf(j) };
  return { k, j, ...names, otherIsPredicted: j === winner };
}

/**
 * Return words in a sentence.
 * @param {string[]} words
 * @returns {string}
 */
export function listed(words) {
  const quoted = words.map((word) => `"${tokenText(word)}"`);
  if (quoted.length < 2) return quoted.join("");
  return `${quoted.slice(0, -1).join(", ")} and ${quoted[quoted.length - 1]}`;
}

/**
 * Return a sentence on the sizes of which all sets were tried, "" without any.
 * @param {number | null} atLeast
 * @returns {string}
 */
function triedSets(atLeast) {
  const nTried = (atLeast ?? 0) - 1;
  if (nTried < 1) return "";
  if (nTried === 1) return " No single word is enough (all were tried).";
  const size = nTried === 2 ? "one or two" : `up to ${nTried}`;
  return ` No set of ${size} words is enough (all were tried).`;
}

/**
 * Return the sum of the contributions of tokens.
 * @param {ShownToken[]} tokens
 * @returns {number}
 */
function sumOf(tokens) {
  return tokens.reduce((sum, { contribution }) => sum + contribution, 0);
}

/**
 * Return the largest size of a contribution, 0 without any.
 * @param {{contribution: number}[]} parts
 * @returns {number}
 */
export function largestContribution(parts) {
  return largestOf(parts.map(({ contribution }) => contribution));
}
