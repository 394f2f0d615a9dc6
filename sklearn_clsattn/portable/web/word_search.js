// The fewest words whose deletion reaches a goal, found by predicting edited texts.
//
// A choice of words is an array of their numbers. It reaches the goal if its margin is positive,
// such as the lead of another class in the text without these words. A margin is known only by
// predicting, and says nothing about other choices, so a size is excluded only by trying all
// choices of that size. It is the search of `explain(...).counterfactual()` in Python.

/** @typedef {number[]} Choice numbers of words */
/** @typedef {(choices: Choice[]) => number[]} Margins */

/**
 * The result of a search for words.
 * @typedef {object} SearchResult
 * @property {Choice | null} words the most effective first, null if none were found
 * @property {number} nTried all choices of up to this many words were tried
 */

const REACHED = 1e-9; // the least margin that is not rounding
const DECIMALS = 6; // by which words are ranked: of words that are level, the first comes first
const MAX_CHOICES = 2_000; // of more than one word, for trying all choices of a size
const MAX_AT_ONCE = 250; // choices of several sizes that are tried at once
const MAX_READ = 2_000_000; // words of the edited texts by which single words are ranked
const BATCH = 100_000; // words that are predicted before the time is looked at
const CANDIDATES = 32; // words that are tried at each step
const SWAPS = 64; // exchanges of words that are tried at once
const MAX_ROUNDS = 12; // of exchanges

/** The time that a search may take is over. */
class OutOfTime extends Error {}

/** The margins of choices, predicted in batches until the time is over. */
class Trials {
  /**
   * @param {Margins} predict
   * @param {number} nWords
   * @param {number} length occurrences of words in an edited text, at most
   * @param {number} deadline
   * @param {number[]} effects what choosing each word adds to the margin, as far as it is known
   */
  constructor(predict, nWords, length, deadline, effects) {
    this.predict = predict;
    this.nWords = nWords;
    this.length = length;
    this.deadline = deadline;
    this.effects = effects;
    /** @type {Choice | null} the fewest words that reached the goal so far */
    this.best = null;
    this.nTried = -1; // all choices of up to this many words were tried
  }

  /**
   * Return the margins of choices; remember the best that reached the goal.
   * @param {Choice[]} choices
   * @returns {number[]}
   */
  margins(choices) {
    const margins = [];
    const size = Math.max(1, Math.floor(BATCH / Math.max(this.length, 1)));
    for (let start = 0; start < choices.length; start += size) {
      if (performance.now() > this.deadline) throw new OutOfTime();
      margins.push(...this.predict(choices.slice(start, start + size)));
    }
    margins.forEach((margin, at) => {
      if (margin <= REACHED) return;
      if (this.best === null || choices[at].length < this.best.length) this.best = choices[at];
    });
    return margins;
  }
}

/**
 * Return the fewest words that were found whose choice reaches the goal.
 * @param {Margins} margins
 * @param {number} nWords
 * @param {number} length number of words in an edited text
 * @param {number[]} suspicion ranks words where not all can be tried
 * @param {number} timeLimit in seconds
 * @returns {SearchResult}
 */
export function fewestWords(margins, nWords, length, suspicion, timeLimit) {
  const deadline = performance.now() + 1000 * timeLimit;
  const trials = new Trials(margins, nWords, length, deadline, suspicion.slice());
  /** @type {Choice | null} */
  let chosen;
  try {
    chosen = exhaustiveSearch(trials);
    if (chosen === null && trials.nTried < nWords) {
      chosen = greedySearch(trials);
      if (chosen !== null) chosen = exchanged(trials, pruned(trials, chosen));
    }
  } catch (error) {
    if (!(error instanceof OutOfTime)) throw error;
    chosen = trials.best;
  }
  if (chosen === null) return { words: null, nTried: trials.nTried };
  const words = ranked(chosen, trials.effects);
  return { words, nTried: trials.nTried };
}

/**
 * Return the best of the smallest choices that reach the goal, trying all of a size; null if they
 * are too many. All single words are tried unless the text is very long.
 * @param {Trials} trials
 * @returns {Choice | null}
 */
function exhaustiveSearch(trials) {
  const n = trials.nWords;
  if ((n + 1) * trials.length > MAX_READ) {
    const [margin] = trials.margins([[]]);
    trials.nTried = 0;
    return margin > REACHED ? [] : null;
  }
  let nLeft = n + 1 + MAX_CHOICES;
  let size = 0;
  while (size <= n) {
    // 1) All choices of the next size, or of several sizes if they are few.
    /** @type {Choice[]} */
    const choices = [];
    while (size <= n && nChoices(n, size) <= nLeft) {
      if (choices.length && size > 1 && choices.length + nChoices(n, size) > MAX_AT_ONCE) break;
      nLeft -= nChoices(n, size);
      choices.push(...combinations(n, size));
      size++;
    }
    if (!choices.length) return null;
    const margins = trials.margins(choices);
    if (trials.nTried < 0) {
      // The first choices are no word and the single words.
      trials.effects = margins.slice(1, n + 1).map((margin) => margin - margins[0]);
    }
    trials.nTried = size - 1;
    // 2) The smallest that reach the goal, and the best of these.
    const reached = [...margins.keys()].filter((at) => margins[at] > REACHED);
    const smallest = Math.min(...reached.map((at) => choices[at].length));
    const best = reached.filter((at) => choices[at].length === smallest);
    if (best.length) return choices[ranked(best, margins)[0]];
  }
  return null;
}

/**
 * Return a choice of the most effective words that reaches the goal, null without one.
 * @param {Trials} trials
 * @returns {Choice | null}
 */
function greedySearch(trials) {
  const n = trials.nWords;
  const effects = trials.effects.slice();
  /** @type {Choice} */
  let chosen = [];
  let [margin] = trials.margins([chosen]);
  while (margin <= REACHED && chosen.length < n) {
    // 1) The effects of the best candidates, now that others are chosen.
    const candidates = ranked(others(n, chosen), effects).slice(0, CANDIDATES);
    let gains = candidates.map((word) => effects[word]);
    if (chosen.length || !trials.nTried) {
      const choices = candidates.map((word) => [...chosen, word]);
      const before = margin;
      gains = trials.margins(choices).map((after) => after - before);
      candidates.forEach((word, at) => {
        effects[word] = gains[at];
      });
    }
    const useful = ranked([...gains.keys()], gains).filter((at) => gains[at] > 0);
    if (!useful.length) break;
    // 2) A quarter of those that seem to be needed, at least the best.
    const words = useful.map((at) => candidates[at]);
    let nNeeded = 1;
    for (let sum = 0; nNeeded <= words.length; nNeeded++) {
      sum += effects[words[nNeeded - 1]];
      if (sum >= REACHED - margin) break;
    }
    chosen = [...chosen, ...words.slice(0, Math.max(1, Math.floor(nNeeded / 4)))];
    if (nNeeded >= 8) [margin] = trials.margins([chosen]);
    else margin += Math.max(...gains); // the margin with the best word alone is known
  }
  return margin > REACHED ? chosen : shortestPrefix(trials);
}

/**
 * Return the first words, by their effects, that reach the goal, null if none do.
 * @param {Trials} trials
 * @returns {Choice | null}
 */
function shortestPrefix(trials) {
  const n = trials.nWords;
  const order = ranked([...Array(n).keys()], trials.effects);
  const nEnds = Math.min(n, CANDIDATES);
  const ends = new Set();
  for (let at = 0; at < nEnds; at++) {
    ends.add(nEnds > 1 ? Math.round(n ** (at / (nEnds - 1))) : 1);
  }
  const prefixes = [...ends].map((end) => order.slice(0, end));
  const margins = trials.margins(prefixes);
  return prefixes.find((_, at) => margins[at] > REACHED) ?? null;
}

/**
 * Return a choice without needless words, and the margins without each of its words.
 * @param {Trials} trials
 * @param {Choice} chosen
 * @returns {{chosen: Choice, without: number[]}}
 */
function pruned(trials, chosen) {
  for (;;) {
    // 1) The words that can be left out alone.
    const fewer = chosen.map((_, at) => chosen.filter((_word, other) => other !== at));
    const without = trials.margins(fewer);
    const needless = [...without.keys()].filter((at) => without[at] > REACHED);
    if (!needless.length) return { chosen, without };
    // 2) As many of the least needed words as can go together: 1, 2, 4, ...
    const words = ranked(needless, without).map((at) => chosen[at]);
    /** @type {Choice[]} */
    const smaller = [];
    for (let size = 1; size <= words.length; size *= 2) {
      const leftOut = new Set(words.slice(0, size));
      smaller.push(chosen.filter((word) => !leftOut.has(word)));
    }
    const margins = trials.margins(smaller);
    let last = 0;
    margins.forEach((margin, at) => {
      if (margin > REACHED) last = at;
    });
    chosen = smaller[last];
  }
}

/**
 * Return a smaller choice, if exchanging words leads to one: two words for one, or one for a
 * better one, as their separate effects suggest.
 * @param {Trials} trials
 * @param {{chosen: Choice, without: number[]}} start
 * @returns {Choice}
 */
function exchanged(trials, { chosen, without }) {
  for (let round = 0; round < MAX_ROUNDS; round++) {
    if (chosen.length <= Math.max(2, trials.nTried + 1)) break;
    const unchosen = ranked(others(trials.nWords, chosen), trials.effects).slice(0, CANDIDATES);
    if (!unchosen.length) break;
    // 1) What each word of the choice, and each other word, adds to its margin.
    const present = chosen;
    const larger = unchosen.map((word) => [...present, word]);
    const [margin, ...marginsOfLarger] = trials.margins([present, ...larger]);
    const gains = marginsOfLarger.map((after) => after - margin);
    const losses = without.map((after) => margin - after);
    // 2) The most promising exchanges of two words, or one, for another.
    const singles = losses.map((loss, at) => ({ loss: rounded(loss), places: [at] }));
    const pairs = combinations(present.length, 2).map((places) => ({
      loss: rounded(losses[places[0]] + losses[places[1]]),
      places,
    }));
    const smaller = promising(present, pairs, unchosen, gains);
    const sameSize = promising(present, singles, unchosen, gains);
    // 3) The best of them: a smaller choice, or one with a higher margin.
    const margins = trials.margins([...smaller, ...sameSize]);
    const ofSmaller = margins.slice(0, smaller.length);
    const ofSameSize = margins.slice(smaller.length);
    if (Math.max(0, ...ofSmaller) > REACHED) chosen = bestOf(smaller, ofSmaller);
    else if (Math.max(0, ...ofSameSize) > margin + REACHED) chosen = bestOf(sameSize, ofSameSize);
    else break;
    ({ chosen, without } = pruned(trials, chosen));
  }
  return chosen;
}

/**
 * Return the choices made by exchanges that promise the highest margins.
 * @param {Choice} chosen
 * @param {{loss: number, places: number[]}[]} losses of the places in the choice that are left,
 *   of equal losses in the order of the places
 * @param {Choice} unchosen words that may come instead
 * @param {number[]} gains what each of them adds
 * @returns {Choice[]}
 */
function promising(chosen, losses, unchosen, gains) {
  const least = [...losses].sort((one, other) => one.loss - other.loss).slice(0, SWAPS);
  const exchanges = unchosen.flatMap((word, at) =>
    least.map(({ loss, places }) => ({ promised: gains[at] - loss, word, places })),
  );
  exchanges.sort((one, other) => rounded(other.promised) - rounded(one.promised));
  return exchanges.slice(0, SWAPS).map(({ word, places }) => {
    const kept = chosen.filter((_, at) => !places.includes(at));
    return [...kept, word];
  });
}

/**
 * Return the choice with the highest margin.
 * @param {Choice[]} choices
 * @param {number[]} margins
 * @returns {Choice}
 */
function bestOf(choices, margins) {
  return choices[ranked([...choices.keys()], margins)[0]];
}

/**
 * Return words with the largest effects first.
 * @param {number[]} words
 * @param {number[]} effects
 * @returns {number[]}
 */
function ranked(words, effects) {
  return [...words].sort((one, other) => rounded(effects[other]) - rounded(effects[one]));
}

/**
 * Return a number without the decimals in which words that are level may differ.
 * @param {number} number
 * @returns {number}
 */
function rounded(number) {
  return Math.round(number * 10 ** DECIMALS) / 10 ** DECIMALS;
}

/**
 * Return the numbers of the words that are not chosen.
 * @param {number} nWords
 * @param {Choice} chosen
 * @returns {number[]}
 */
function others(nWords, chosen) {
  const isChosen = new Set(chosen);
  return [...Array(nWords).keys()].filter((word) => !isChosen.has(word));
}

/**
 * Return how many choices of a size there are.
 * @param {number} n
 * @param {number} size
 * @returns {number}
 */
function nChoices(n, size) {
  let count = 1;
  for (let at = 1; at <= size; at++) count = (count * (n - size + at)) / at;
  return count;
}

/**
 * Return all choices of a size, in order.
 * @param {number} n
 * @param {number} size
 * @returns {Choice[]}
 */
function combinations(n, size) {
  /** @type {Choice[]} */
  let choices = [[]];
  for (let length = 1; length <= size; length++) {
    const longer = [];
    for (const choice of choices) {
      const first = choice.length ? choice[choice.length - 1] + 1 : 0;
      for (let word = first; word <= n - size + length - 1; word++) longer.push([...choice, word]);
    }
    choices = longer;
  }
  return choices;
}
