// Reads models that sklearn_clsattn.saving.to_json has written, and explains texts by them:
//   const model = new AttentionModel(JSON.parse(json));
//   const {predicted, decision, probabilities, tokens} = model.explain("a fine film");
// Needs nothing else. In Node: const AttentionModel = require("./reader.js").
"use strict";

class AttentionModel {
  constructor(json) {
    if (json.format !== "sklearn-clsattn" || json.version !== 1) {
      throw new Error("expected the JSON of sklearn_clsattn.saving.to_json, version 1");
    }
    Object.assign(this, json);
    const {text, tokens} = json;
    const nWords = text.n_words;
    this.words = new Map(tokens.slice(0, nWords).map((token, at) => [token, at]));
    this.characters = new Map(tokens.slice(nWords).map((token, at) => [token, nWords + at]));
    this.pattern = new RegExp(text.pattern, "gu");
    this.space = new RegExp(text.not_space, "gu");
    this.drop = text.drop && new RegExp(text.drop, "gu");
    this.stopWords = new Set(text.stop_words);
    this.previous = new Map(text.context ? text.context.previous : []);
  }

  // The text as the vectorizer reads it.
  preprocess(text) {
    if (this.text.lowercase) text = text.toLowerCase();
    return this.drop ? text.normalize("NFKD").replace(this.drop, "") : text;
  }

  // The name of a token, as in Python.
  name(column) {
    return (column < this.text.n_words ? "" : this.text.prefix) + this.tokens[column];
  }

  // Decision, probabilities and what each token adds. A document's `occurrences` are
  // {token, share, spans}: the number of the token in `tokens`, its share of what the token counts,
  // and where each of its words starts and stops in the text (null where that is not known).
  explain(text) {
    const read = this.preprocess(text);
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
    let most = logits.reduce((one, other) => Math.max(one, other), ofCls);
    if (most === -Infinity) most = 0;
    const masses = logits.map((logit) => Math.exp(logit - most));
    const clsMass = Math.exp(ofCls - most);
    const total = masses.reduce((one, other) => one + other, clsMass) || 1;
    const number = new Map(columns.map((column, at) => [column, at]));
    const tokens = columns.map((column, at) => {
      const attention = masses[at] / total;
      return {
        name: this.name(column), column, count: entries.get(column), attention,
        values: values.map((of) => of[column]),
        contributions: values.map((of) => attention * of[column]),
      };
    });
    const decision = intercept.map((start, k) =>
      start + tokens.reduce((sum, token) => sum + token.contributions[k], 0));
    const probabilities = AttentionModel.probabilities(decision);
    let best = decision.length === 1 ? +(decision[0] > 0) : 0;
    if (decision.length > 1) decision.forEach((one, k) => { if (one > decision[best]) best = k; });
    const occurrences = found.map(({column, spans, weight}) => ({
      token: number.get(column), share: weight / entries.get(column), spans: place && spans.map(place),
    }));
    return {
      decision, probabilities, predicted: this.classes[best], tokens, occurrences,
      intercept, cls: clsMass / total,
    };
  }

  // Of decisions: the log-odds of the second of two classes, or one number for each class.
  static probabilities(decision) {
    if (decision.length === 1) {
      return [1 / (1 + Math.exp(decision[0])), 1 / (1 + Math.exp(-decision[0]))];
    }
    const most = Math.max(...decision);
    const masses = decision.map((one) => Math.exp(one - most));
    const total = masses.reduce((one, other) => one + other, 0);
    return masses.map((one) => one / total);
  }

  // The entries of a text's bag, column to number, and its occurrences with what each counts.
  _bag(text) {
    const {analyzer, ngram_range, context, binary} = this.text;
    let words = [], spelled = [];
    if (analyzer === "char_wb") {
      spelled = this._spell(text, ngram_range, this.words, []);
    } else {
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
      const start = match.index + (match.length > 1 ? match[0].indexOf(word) : 0);
      tokens.push({word, start, stop: start + word.length});
    }
    return tokens;
  }

  _ngrams(tokens, [shortest, longest], gates) {
    const found = [];
    for (let n = shortest; n <= longest; n++) {
      for (let at = 0; at + n <= tokens.length; at++) {
        const column = this.words.get(tokens.slice(at, at + n).map((one) => one.word).join(" "));
        if (column === undefined) continue;
        const spans = tokens.slice(at, at + n).map((one) => [one.start, one.stop]);
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
      const inside = next < gates.length && gates[next].start < index + word.length;
      const gate = inside ? gates[next].gate : 1;
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

  // A function from places in the text as read to places in the text; null where they are unknown.
  _places(text, read) {
    if (text.length === read.length && !this.drop) return (span) => span;
    const starts = [], stops = [];
    let at = 0;
    for (const letter of text) {
      const length = this.preprocess(letter).length;
      for (let i = 0; i < length; i++) {
        starts.push(at);
        stops.push(at + letter.length);
      }
      at += letter.length;
      if (!length && stops.length) stops[stops.length - 1] = at;  // a dropped accent
    }
    if (starts.length !== read.length) return null;
    return ([start, stop]) => [starts[start], stops[stop - 1]];
  }
}

if (typeof module !== "undefined") module.exports = AttentionModel;
