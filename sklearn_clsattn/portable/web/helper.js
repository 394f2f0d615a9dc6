// The worker, as the page sees it.

import { element } from "./elements.js";

/** The worker, which is asked questions. */
export class Helper {
  /** @param {Uint8Array} file of the model */
  constructor(file) {
    this.file = file;
    /** @type {Worker | null} */
    this.worker = null;
    /** @type {Map<number, {resolve: (answer: any) => void, reject: (error: Error) => void}>} */
    this.waiting = new Map();
    this.nAsked = 0;
    /** @type {(share: number) => void} */
    this.onProgress = () => {};
  }

  /** Start the worker, which runs the page's script and reads the model. */
  #start() {
    const source = new Blob([element("script").textContent], { type: "text/javascript" });
    const worker = new Worker(URL.createObjectURL(source));
    worker.onmessage = ({ data }) => {
      if (data.progress !== undefined) {
        this.onProgress(data.progress);
        return;
      }
      const asked = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if (data.error === undefined) asked?.resolve(data.answer);
      else asked?.reject(new Error(data.error));
    };
    worker.onerror = () => {
      for (const { reject } of this.waiting.values()) reject(new Error("The worker has failed."));
      this.waiting.clear();
      this.worker = null;
    };
    this.worker = worker;
    void this.ask("load", { file: this.file });
    return worker;
  }

  /**
   * Return the worker's answer to a question.
   * @param {string} question
   * @param {object} details
   * @returns {Promise<any>}
   */
  ask(question, details) {
    const worker = this.worker ?? this.#start();
    const id = this.nAsked++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      worker.postMessage({ id, question, ...details });
    });
  }
}
