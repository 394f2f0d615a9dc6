// The part of the page that is about one text: the prediction, its reasons, words to strike out.

import { create, element } from "./elements.js";
import { aligned, percent, tokenText, visible, weightColumn } from "./formatting.js";
import { textOf } from "./unicode.js";
import { largestContribution, listed, View } from "./view.js";

/** @typedef {import("./explanation.js").Deletion} Deletion */
/** @typedef {import("./helper.js").Helper} Helper */
/** @typedef {import("./scorer.js").Scorer} Scorer */
/** @typedef {import("./texts.js").Span} Span */
/** @typedef {import("./view.js").Segment} Segment */
/** @typedef {import("./view.js").Side} Side */

const LONGEST_SHOWN = 50_000; // characters of a text that is shaded
const LONGEST_SEARCHED = 2_000; // words; in longer ones a search takes seconds
const PAUSE = 250; // milliseconds after typing, before what takes long
const LONG = 8_000; // characters of a text that is read after the pause
const MOST_NAMED = 6; // words that are struck out
const HINT =
  "Click or tap a word to strike it out, and again to put it back: the text is predicted without " +
  "it.\nPoint at a word to see what it adds.\nWith the keyboard: arrows, and Enter.";
const NOTE =
  "The decision is the start value (the intercept, before any word) and what each token, a word or " +
  "pair, adds: of two classes it is the logarithm of the odds. Attention: the token's share of the " +
  "text. Weight: how often it occurs, and where. Without: the decision for the text without the " +
  "words of the token, predicted again.";

/** The part of the page that is about one text. */
export class TextPart {
  /**
   * @param {Scorer} scorer
   * @param {Helper} searches
   */
  constructor(scorer, searches) {
    this.scorer = scorer;
    this.searches = searches;
    this.target = -1; // the class that is explained; -1 for the predicted one
    /** @type {Span[]} */
    this.struck = []; // in the order in which they were struck out
    /** @type {Span[][]} */
    this.before = []; // what was struck out before each change
    /** @type {Deletion | null} */
    this.deletion = null;
    this.isSearching = false;
    /** @type {number | undefined} */
    this.timer = undefined;
    /** @type {HTMLElement[]} */
    this.wordElements = [];
    this.explanation = scorer.explain("");
    this.view = new View(this.explanation);
    element("text").addEventListener("input", () => {
      this.target = -1;
      clearTimeout(this.timer);
      if (element("text").value.length <= LONG) this.show();
      else this.timer = window.setTimeout(() => this.show(), PAUSE);
    });
    element("undo").addEventListener("click", () => {
      this.#showStruck(this.before.pop() ?? []);
      if (!this.struck.length) this.#currentWord()?.focus();
    });
    element("restore").addEventListener("click", () => {
      this.strike([]);
      this.#currentWord()?.focus();
    });
    element("keep").addEventListener("click", () => {
      element("text").value = this.explanation.without(inOrder(this.struck));
      this.show();
      element("text").focus();
    });
    element("strike").addEventListener("click", () => {
      if (this.deletion) this.strike(this.deletion.spans);
    });
    const words = element("words");
    for (const event of ["pointerover", "focusin"]) {
      words.addEventListener(event, (/** @type {Event} */ { target }) => this.#describe(target));
    }
    words.addEventListener("click", (/** @type {Event} */ { target }) => this.#toggle(target));
    element("more").addEventListener("toggle", () => this.#showNumbers());
    words.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.#onKey(event));
    this.show();
  }

  /** Show what the model makes of the text in the box. */
  show() {
    /** @type {string} */
    const text = element("text").value;
    this.explanation = this.scorer.explain(text);
    this.view = new View(this.explanation, this.target);
    this.struck = [];
    this.before = [];
    this.deletion = null;
    element("result").hidden = !text.trim();
    this.#showPrediction();
    this.#showReasons();
    this.#showWords();
    element("word").hidden = !this.wordElements.length;
    element("more").hidden = !this.view.tokens.length;
    element("strike").hidden = true;
    element("deletion").textContent = "";
    // What takes longer waits until nothing is typed.
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      element("announced").textContent = element("prediction").textContent;
      this.#showNumbers();
      void this.#search();
    }, PAUSE);
  }

  /**
   * Strike words out, and show the prediction for the text without them.
   * @param {Span[]} spans
   */
  strike(spans) {
    this.before.push(this.struck);
    this.#showStruck(spans);
  }

  /**
   * Show some words struck out, and the prediction for the text without them.
   * @param {Span[]} spans
   */
  #showStruck(spans) {
    this.struck = spans;
    for (const word of this.wordElements) {
      const segment = this.#segmentOf(word);
      const isStruck = spans.some(([start, stop]) => start < segment.stop && segment.start < stop);
      word.setAttribute("aria-pressed", String(isStruck));
    }
    this.#showPrediction();
    element("strike").hidden = !this.deletion?.words.length || spans.length > 0;
    element("announced").textContent = element("prediction").textContent;
  }

  /** Show the prediction, for the text without the words that are struck out. */
  #showPrediction() {
    const { labels } = this.view;
    const spans = inOrder(this.struck);
    const { codes, probabilities: asItWas, predicted: before } = this.explanation;
    let { probabilities, predicted } = this.explanation;
    if (spans.length) {
      const decisions = this.scorer.model.decisions(this.explanation.without(spans));
      probabilities = this.scorer.model.probabilities(decisions);
      predicted = this.scorer.model.predicted(decisions);
    }
    // 1) A sentence.
    const names = predicted.map((number) => create("b", {}, create("bdi", {}, labels[number])));
    const sentence = element("prediction");
    sentence.replaceChildren(spans.length ? "Without the struck words: predicted " : "Predicted ");
    if (!names.length) sentence.append(create("b", {}, "none of the labels"));
    names.forEach((name, at) => sentence.append(at ? ", " : "", name));
    if (!this.view.severalLabels) {
      sentence.append(" with probability ", create("b", {}, percent(probabilities[predicted[0]])));
    }
    // 2) What was struck out, and the prediction before.
    element("edited").hidden = !spans.length;
    const struck = spans.map(([start, stop]) => textOf(codes, start, stop));
    const was = before
      .map((number) => `${labels[number]} (${percent(asItWas[number])})`)
      .join(", ");
    const without = struck.length > MOST_NAMED ? `${struck.length} words` : listed(struck);
    element("edited").firstElementChild.textContent =
      `Struck out: ${without}. With the whole text, of which the shades and sentences are: ` +
      `${was || "none of the labels"}.`;
    // 3) The classes.
    const { shown, nMore } = this.view.classesToName(probabilities);
    const items = shown.map((number) =>
      this.#classItem(number, probabilities[number], predicted.includes(number)),
    );
    if (nMore) items.push(create("li", { class: "soft" }, `and ${nMore} more classes`));
    element("classes").replaceChildren(...items);
  }

  /**
   * Return the item of a class; of several, one is chosen to be explained.
   * @param {number} number
   * @param {number} probability
   * @param {boolean} isPredicted
   * @returns {HTMLElement}
   */
  #classItem(number, probability, isPredicted) {
    const bar = create("i", {});
    bar.style.width = `${(100 * probability).toFixed(1)}%`;
    const name = create("bdi", {}, this.view.labels[number]);
    const parts = [
      create("span", { class: "name" }, name, " ", create("span", {}, percent(probability))),
      create("span", { class: "meter" }, bar),
    ];
    const item = create("li", { class: isPredicted ? "shown" : "soft" });
    if (!this.view.isChosen) {
      item.append(...parts);
      return item;
    }
    const pressed = String(number === this.view.k);
    const attributes = { type: "button", "aria-pressed": pressed, title: "Explain this class" };
    const button = create("button", attributes, ...parts);
    button.addEventListener("click", () => {
      const { struck } = this;
      this.target = number;
      this.show();
      if (struck.length) this.strike(struck);
      element("classes").querySelector("[aria-pressed=true]")?.focus();
    });
    item.append(button);
    return item;
  }

  /** Show the sentence on the strongest words, and what the shades mean. */
  #showReasons() {
    const { view } = this;
    const sentence = element("reasons");
    sentence.replaceChildren();
    view.reasons.forEach(({ sign, tokens, verb, label }, at) => {
      tokens.forEach(({ name, contribution }, number) => {
        const isLast = number === tokens.length - 1;
        const letter = sign > 0 ? "p" : "n";
        const shade = `t ${letter}${view.shade(contribution)}`;
        const before = number === 0 ? "" : isLast ? " and " : ", ";
        sentence.append(`${before}"`, create("bdi", { class: shade }, tokenText(name)), '"');
      });
      const end = at === view.reasons.length - 1 ? "." : "; ";
      sentence.append(` ${verb} `, create("bdi", {}, label), end);
    });
    const { words } = this.explanation;
    const nKnown = view.segments.filter(({ tokens }) => tokens.length).length;
    const isStrange = words.length > 0 && nKnown < words.length / 2;
    element("known").textContent = isStrange
      ? `The model knows ${nKnown || "none"} of the ${words.length} words and signs.`
      : "";
    const legend = element("legend");
    legend.replaceChildren(
      create("span", {}, ramp("p"), ` for ${view.targetName}`),
      create("span", {}, ramp("n"), ` for ${view.otherName}`),
      create("span", {}, "Fullest colour: the strongest word. Grey text: unknown to the model."),
    );
    if (view.isChosen) {
      const choose = "Choose another class above to see what speaks for it.";
      legend.append(create("span", {}, choose));
    }
    if (this.explanation.ignored.length) {
      const ignored = create("span", {}, create("s", {}, "Struck"), ": ignored by this model.");
      legend.append(ignored);
    }
    legend.hidden = !view.tokens.length;
  }

  /** Show the text, shaded word by word. */
  #showWords() {
    const { view } = this;
    const box = element("words");
    element("word").textContent = HINT;
    if (this.explanation.codes.length > LONGEST_SHOWN) {
      const longest = LONGEST_SHOWN.toLocaleString("en");
      box.replaceChildren(`Texts of more than ${longest} characters are classified, not shown.`);
      this.wordElements = [];
      return;
    }
    const parts = view.segments.map((segment, at) => {
      const text = visible(segment.text, true);
      if (segment.isIgnored) return create("s", {}, text);
      if (!segment.isWord) return text;
      const shade = view.shade(segment.contribution);
      const letter = segment.contribution > 0 ? "p" : "n";
      const known = segment.tokens.length ? ` t${shade ? ` ${letter}${shade}` : ""}` : "";
      const attributes = { role: "button", "aria-pressed": "false", tabindex: "-1" };
      const description = { "aria-description": view.effectOf(segment), "data-at": String(at) };
      return create("span", { class: `w${known}`, ...attributes, ...description }, text);
    });
    box.replaceChildren(...parts);
    this.wordElements = Array.from(box.querySelectorAll(".w"));
    this.wordElements[0]?.setAttribute("tabindex", "0");
  }

  /** Show the decision as a sum, and the tokens of each side in a table, where they are seen. */
  #showNumbers() {
    const { view } = this;
    if (!element("more").open) return;
    const [end, start, plus, minus] = aligned([
      view.end,
      view.start,
      view.plus.total,
      view.minus.total,
    ]);
    const sum = create("p", { class: "sum" });
    sum.append(create("span", {}, create("b", {}, end), ` ${view.decisionName} =`));
    sum.append(create("span", {}, create("b", {}, start), " start value"));
    if (view.plus.total) {
      sum.append(create("span", {}, create("b", {}, plus), ` for ${view.plus.label}`));
    }
    if (view.minus.total) {
      sum.append(create("span", {}, create("b", {}, minus), ` for ${view.minus.label}`));
    }
    const box = element("numbers");
    box.replaceChildren(sum);
    if (!view.listed.length) return;
    const numbers = aligned(view.listed.map(({ contribution }) => contribution));
    const weights = weightColumn(view.listed.map(({ weight }) => weight));
    const lists = create("div", { class: "lists" });
    for (const side of view.sides) {
      const first = side.sign > 0 ? 0 : view.plus.tokens.length;
      lists.append(this.#sideTable(side, numbers.slice(first), weights.slice(first)));
    }
    box.append(lists);
    for (const remark of view.remarks()) {
      box.append(create("p", { class: "soft small" }, remark));
    }
    box.append(create("p", { class: "soft small" }, NOTE));
  }

  /**
   * Return the table of one side.
   * @param {Side} side
   * @param {string[]} adds
   * @param {string[]} weights
   * @returns {HTMLElement}
   */
  #sideTable(side, adds, weights) {
    const title = `For ${side.label}${side.tokens.length ? "" : ": no token"}`;
    const table = create("table", side.sign < 0 ? { class: "minus" } : {});
    table.append(create("caption", {}, title));
    if (!side.tokens.length) return table;
    const names = ["token", "adds", "attention", "weight", "without"];
    const heads = names.map((name) => create("th", { scope: "col" }, name));
    table.append(create("thead", {}, create("tr", {}, ...heads)));
    const largest = largestContribution(this.view.listed);
    const without = aligned(side.tokens.map((token) => this.view.decisionWithout(token)));
    const rows = side.tokens.map(({ name, contribution, attention, isKnown }, at) => {
      const size = create("span", { class: "size" });
      size.style.width = `${((100 * Math.abs(contribution)) / largest).toFixed(1)}%`;
      const head = create("th", { scope: "row" }, size, create("bdi", {}, tokenText(name)));
      if (!isKnown)
        head.append(" ", create("span", { class: "of" }, "unknown word, by its letters"));
      const cells = [adds[at], percent(attention), weights[at], without[at]];
      return create("tr", {}, head, ...cells.map((cell) => create("td", {}, cell)));
    });
    table.append(create("tbody", {}, ...rows));
    return table;
  }

  /** Ask for the fewest words whose deletion changes the prediction, and show them. */
  async #search() {
    const { explanation, view } = this;
    if (!explanation.tokens.length || this.isSearching) return;
    if (explanation.words.length > LONGEST_SEARCHED) {
      const longest = LONGEST_SEARCHED.toLocaleString("en");
      element("deletion").textContent =
        `In texts of more than ${longest} words and signs, the fewest that decide are not searched.`;
      return;
    }
    element("deletion").textContent = "Looking for the fewest words that decide …";
    const label = view.severalLabels ? view.k : -1;
    this.isSearching = true;
    try {
      const question = { text: explanation.text, label };
      const deletion = await this.searches.ask("fewestWords", question);
      if (this.explanation === explanation) {
        this.deletion = deletion;
        element("deletion").textContent = view.statement(deletion);
        element("strike").hidden = !deletion.words.length || this.struck.length > 0;
      }
    } catch (error) {
      element("deletion").textContent = /** @type {Error} */ (error).message;
    }
    this.isSearching = false;
    if (this.explanation !== explanation) await this.#search(); // something else was typed
  }

  /**
   * Return the segment of a word's element.
   * @param {HTMLElement} word
   * @returns {Segment}
   */
  #segmentOf(word) {
    return this.view.segments[Number(word.dataset.at)];
  }

  /**
   * Show what a word adds.
   * @param {EventTarget | null} target
   */
  #describe(target) {
    if (!(target instanceof HTMLElement) || !target.classList.contains("w")) return;
    const segment = this.#segmentOf(target);
    const first = `“${tokenText(segment.text)}”: ${this.view.effectOf(segment)}`;
    element("word").textContent = [first, ...this.view.linesOf(segment)].join("\n");
  }

  /**
   * Strike a word out, or put it back.
   * @param {EventTarget | null} target
   */
  #toggle(target) {
    if (!(target instanceof HTMLElement) || !target.classList.contains("w")) return;
    const { start, stop } = this.#segmentOf(target);
    const others = this.struck.filter(([first, last]) => last <= start || stop <= first);
    this.strike(others.length < this.struck.length ? others : [...others, [start, stop]]);
    this.#moveTo(target);
  }

  /**
   * Move among the words by arrows, and strike one out by Enter or the space bar.
   * @param {KeyboardEvent} event
   */
  #onKey(event) {
    const at = this.wordElements.indexOf(/** @type {HTMLElement} */ (event.target));
    if (at < 0) return;
    const last = this.wordElements.length - 1;
    /** @type {Record<string, number>} */
    const places = { ArrowLeft: at - 1, ArrowUp: at - 1, ArrowRight: at + 1, ArrowDown: at + 1 };
    Object.assign(places, { Home: 0, End: last });
    if (event.key === "Enter" || event.key === " ") this.#toggle(event.target);
    else if (event.key in places) {
      const place = Math.min(Math.max(places[event.key], 0), last);
      this.#moveTo(this.wordElements[place]);
    } else return;
    event.preventDefault();
  }

  /**
   * Return the word that is reached by the keyboard.
   * @returns {HTMLElement | undefined}
   */
  #currentWord() {
    return this.wordElements.find((word) => word.getAttribute("tabindex") === "0");
  }

  /**
   * Move the focus to a word.
   * @param {HTMLElement} word
   */
  #moveTo(word) {
    for (const other of this.wordElements) other.setAttribute("tabindex", "-1");
    word.setAttribute("tabindex", "0");
    word.focus();
  }
}

/**
 * Return spans in the order of the text.
 * @param {Span[]} spans
 * @returns {Span[]}
 */
function inOrder(spans) {
  return [...spans].sort((one, other) => one[0] - other[0]);
}

/**
 * Return the shades of a sign.
 * @param {string} letter
 * @returns {HTMLElement}
 */
function ramp(letter) {
  const shades = [1, 2, 3, 4, 5].map((shade) => create("i", { class: `${letter}${shade}` }));
  return create("span", { class: "ramp" }, ...shades);
}
