// A model of the page, as `_page_model.py` writes it, which explains texts.
"use strict";

const sumOf = (numbers) => numbers.reduce((one, other) => one + other, 0);

class AttentionModel {
  constructor(values) {
    Object.assign(this, values);
    const {text, tokens, n_words: nWords} = values;
    this.words = new Map(tokens.slice(0, nWords).map((token, at) => [token, at]));
    this.characters = new Map(tokens.slice(nWords).map((token, at) => [token, nWords + at]));
    this.pattern = new RegExp(text.pattern, "gu");
    this.space = new RegExp(text.not_space, "gu");
    this.stopWords = new Set(text.stop_words);
    this.previous = new Map(text.context ? text.context.previous : []);
  }

  // Decision, probabilities, what each token adds, and its `occurrences`: the token's number, its
  // share of what the token counts, and where its words start and stop (null if not known).
  explain(text) {
    const read = this.text.lowercase ? text.toLowerCase() : text;
    const place = this._places(text, read);
    const {entries, found} = this._bag(read);
    const {scores, values, intercept, cls_weight, cls_score, entry_scale} = this;
    const columns = [...entries.keys()].sort((one, other) => one - other);
    const logits = columns.map((column) => {
      const entry = entries.get(column);
      const weight = entry_scale === null ? entry
        : entry_scale * (Math.log1p(entry / entry_scale) / Math.LN2);
      return Math.log(weight) + scores[column];
    });
    const ofCls = cls_weight ? cls_score + Math.log(cls_weight) : -Infinity;
    const most = logits.reduce((one, other) => Math.max(one, other), ofCls);
    const mass = (logit) => most === -Infinity ? 0 : Math.exp(logit - most);
    const total = sumOf(logits.map(mass)) + mass(ofCls) || 1;
    const number = new Map(columns.map((column, at) => [column, at]));
    const tokens = columns.map((column, at) => {
      const attention = mass(logits[at]) / total, ofToken = values.map((of) => of[column]);
      return {
        name: (column < this.n_words ? "" : this.text.context.prefix) + this.tokens[column],
        column, count: entries.get(column), attention,
        values: ofToken, contributions: ofToken.map((value) => attention * value),
      };
    });
    const decision = intercept.map((start, k) =>
      start + sumOf(tokens.map((token) => token.contributions[k])));
    // Of two classes, the decision is the log-odds of the second.
    const ofClasses = decision.length === 1 ? [0, decision[0]] : decision;
    const highest = Math.max(...ofClasses), masses = ofClasses.map((one) => Math.exp(one - highest));
    const occurrences = found.map(({column, spans, weight}) => ({
      token: number.get(column), share: weight / entries.get(column),
      spans: place && spans.map(place),
    }));
    return {
      decision, probabilities: masses.map((one) => one / sumOf(masses)),
      predicted: ofClasses.indexOf(highest), tokens, occurrences, cls: mass(ofCls) / total,
    };
  }

  // The entries of a text's bag, column to number, and its occurrences with what each counts.
  _bag(text) {
    const {by_word, ngram_range, context, binary} = this.text;
    let words = [], spelled = [];
    if (!by_word) spelled = this._spell(text, ngram_range, this.words, []);
    else {
      const tokens = this._tokens(text);
      const gates = context && this._gates(text, tokens);
      words = this._ngrams(tokens, ngram_range, gates);
      if (context && context.characters) {
        spelled = this._spell(text, context.characters, this.characters,
          tokens.map((token, at) => ({start: token.start, gate: gates[0][at]})));
      }
    }
    const entries = new Map();
    for (const [found, factor] of [[words, 1], [spelled, context ? context.character_weight : 1]]) {
      const counts = new Map();
      for (const {column} of found) counts.set(column, (counts.get(column) || 0) + 1);
      let whole = 0, gated = 0;
      for (const one of found) {
        const count = counts.get(one.column);
        const damped = (1 + Math.log(count)) / count;
        one.weight = context ? damped * one.gate : binary ? 1 / count : 1;
        whole += damped;
        gated += one.weight;
      }
      const scale = context && found.length ? factor * whole / gated : 1;
      for (const one of found) {
        one.weight *= scale;
        entries.set(one.column, (entries.get(one.column) || 0) + one.weight);
      }
    }
    return {entries, found: [...words, ...spelled]};
  }

  _tokens(text) {
    const tokens = [];
    for (const match of text.matchAll(this.pattern)) {
      const word = match.length > 1 ? match[1] || "" : match[0];
      if (this.stopWords.has(word)) continue;
      const start = match.index + match[0].indexOf(word);
      tokens.push({word, start, stop: start + word.length});
    }
    return tokens;
  }

  _ngrams(tokens, [shortest, longest], gates) {
    const found = [];
    for (let n = shortest; n <= longest; n++) {
      for (let at = 0; at + n <= tokens.length; at++) {
        const words = tokens.slice(at, at + n);
        const column = this.words.get(words.map((one) => one.word).join(" "));
        if (column === undefined) continue;
        const spans = words.map((one) => [one.start, one.stop]);
        found.push({column, spans, gate: gates ? gates[n - shortest][at] : 1});
      }
    }
    return found;
  }

  // The character n-grams of the words between white space; each has the gate of its word.
  _spell(text, [shortest, longest], vocabulary, gates) {
    const found = [];
    let next = 0;
    for (const {0: word, index} of text.matchAll(this.space)) {
      while (next < gates.length && gates[next].start < index) next++;
      const gated = gates[next], gate = gated && gated.start < index + word.length ? gated.gate : 1;
      const letters = [" ", ...word, " "];
      const offsets = [0, 0];  // where each letter starts in the word; spaces are beside it
      for (const letter of word) offsets.push(offsets[offsets.length - 1] + letter.length);
      for (let n = shortest; n <= longest; n++) {
        for (let at = 0; at <= Math.max(letters.length - n, 0); at++) {
          const column = vocabulary.get(letters.slice(at, at + n).join(""));
          if (column === undefined) continue;
          const first = Math.min(Math.max(at, 1), letters.length - 2);
          const last = Math.max(Math.min(at + n, letters.length - 1), 2);
          found.push({column, gate, spans: [[index + offsets[first], index + offsets[last]]]});
        }
        if (letters.length <= n) break;  // a short word counts once
      }
    }
    return found;
  }

  // The gate of the n-gram of each length that begins at each token.
  _gates(text, tokens) {
    const {start, end, between} = this.text.context;
    const breaks = new RegExp(between, "u");
    const cell = (distance) => Math.min(Math.floor(Math.log2(distance)), start[0].length - 1);
    const before = tokens.map((token, at) => {
      const last = tokens[at - 1];
      const known = last && !breaks.test(text.slice(last.start, token.start)) &&
        !/[.!?;:,\n]/.test(last.word);
      return known ? this.previous.get(last.word) || 0 : 0;
    });
    return start.map((scores, order) => tokens.map((_, at) => {
      const score = scores[cell(at + 1)] + end[order][cell(tokens.length - at)] + before[at];
      return Math.exp(0.5 * Math.min(Math.max(score, -6), 6));
    }));
  }

  // A function from spans in the lower-case text to spans in the text; null if there is none.
  _places(text, read) {
    if (text.length === read.length) return (span) => span;
    const starts = [], stops = [];
    let at = 0;
    for (const letter of text) {
      const made = [...Array(letter.toLowerCase().length)];
      starts.push(...made.map(() => at));
      at += letter.length;
      stops.push(...made.map(() => at));
    }
    return starts.length === read.length ? ([start, stop]) => [starts[start], stops[stop - 1]] : null;
  }
}
