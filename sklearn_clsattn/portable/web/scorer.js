// A model of texts in JavaScript: load it, predict and explain.

import { Explanation } from "./explanation.js";
import { Model } from "./model.js";
import { readModelFile } from "./model_file.js";

/** @typedef {import("./types.js").Prediction} Prediction */

/** A model that predicts the classes of texts, and says why. */
export class Scorer {
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    this.classes = model.header.classes;
    this.labels = model.header.labels;
    this.severalLabels = model.header.severalLabels;
  }

  /**
   * Return what the model predicts for a text.
   * @param {string} text
   * @returns {Prediction}
   */
  predict(text) {
    const decisions = this.model.decisions(text);
    const numbers = this.model.predicted(decisions);
    const labels = numbers.map((number) => this.classes[number]);
    return {
      label: this.severalLabels ? labels : labels[0],
      numbers,
      probabilities: this.model.probabilities(decisions),
      decisions: Array.from(decisions),
    };
  }

  /**
   * Return what each word of a text adds to the decisions.
   * @param {string} text
   * @returns {Explanation}
   */
  explain(text) {
    return new Explanation(this.model, text);
  }
}

/**
 * Return the model in a file.
 * @param {ArrayBuffer | Uint8Array} file its bytes
 * @returns {Promise<Scorer>}
 */
export async function load(file) {
  const bytes = file instanceof Uint8Array ? file : new Uint8Array(file);
  const { header, arrays } = await readModelFile(bytes);
  return new Scorer(new Model(header, arrays));
}
