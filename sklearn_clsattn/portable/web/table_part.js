// The part of the page that classifies tables.

import { create, element } from "./elements.js";
import { visible } from "./formatting.js";

/** @typedef {import("./helper.js").Helper} Helper */

/** The part of the page that classifies tables. */
export class TablePart {
  /** @param {Helper} helper */
  constructor(helper) {
    this.helper = helper;
    this.name = "";
    this.isBusy = false;
    const page = /** @type {HTMLElement} */ (document.querySelector("main"));
    const input = element("file");
    input.addEventListener("click", () => (input.value = "")); // so that it may be chosen again
    input.addEventListener("change", () => this.#open(input.files[0]));
    element("classify").addEventListener("click", () => this.#classify());
    for (const id of ["column", "withwords"]) {
      element(id).addEventListener("change", () => this.#say(""));
    }
    const hasFile = (/** @type {DragEvent} */ event) =>
      event.dataTransfer?.types.includes("Files") ?? false;
    document.addEventListener("dragover", (event) => {
      if (!hasFile(event)) return;
      event.preventDefault();
      page.classList.add("dropping");
    });
    document.addEventListener("dragleave", () => page.classList.remove("dropping"));
    document.addEventListener("drop", (event) => {
      if (!hasFile(event)) return;
      event.preventDefault();
      page.classList.remove("dropping");
      this.#open(event.dataTransfer?.files[0]);
    });
    helper.onProgress = (share) => {
      element("progress").value = share;
    };
  }

  /**
   * Say how far a table is.
   * @param {(Node | string)[]} parts
   */
  #say(...parts) {
    element("tablestate").replaceChildren(...parts);
    element("tablestate").scrollIntoView({ block: "nearest" });
  }

  /**
   * Read a table, and let its column of texts be chosen.
   * @param {File | undefined} file
   */
  async #open(file) {
    if (!file || this.isBusy) return;
    this.name = file.name;
    element("tableoptions").hidden = true;
    this.#say(`Reading ${file.name} …`);
    try {
      const { header, nRows, likely } = await this.helper.ask("open", { file });
      const options = header.map((/** @type {string} */ name, /** @type {number} */ at) =>
        create("option", { value: String(at) }, visible(name)),
      );
      element("column").replaceChildren(...options);
      element("column").value = String(likely);
      element("tableoptions").hidden = false;
      this.#say(`${file.name}: ${rowsText(nRows)} below the names of the columns.`);
    } catch (error) {
      this.#say(/** @type {Error} */ (error).message);
    }
  }

  /** Classify the texts of the table, and offer it with predictions. */
  async #classify() {
    const { value, selectedOptions } = element("column");
    const withWords = element("withwords").checked;
    this.#setBusy(true);
    this.#say("Classifying …");
    try {
      const question = { column: Number(value), withWords };
      const { file, nRows } = await this.helper.ask("classify", question);
      const name = this.name.replace(/(\.[^.]*)?$/, "_classified$1");
      const link = create("a", { download: name, href: URL.createObjectURL(file) }, name);
      const column = selectedOptions[0].textContent;
      this.#say(`Done, ${rowsText(nRows)} by the column “${column}”: save `, link, ".");
    } catch (error) {
      this.#say(/** @type {Error} */ (error).message);
    }
    this.#setBusy(false);
  }

  /**
   * Let nothing else be chosen while a table is classified.
   * @param {boolean} isBusy
   */
  #setBusy(isBusy) {
    this.isBusy = isBusy;
    for (const id of ["file", "column", "withwords", "classify"]) element(id).disabled = isBusy;
    element("progress").value = 0;
    element("progress").hidden = !isBusy;
  }
}

/**
 * Return a number of rows as text.
 * @param {number} nRows
 * @returns {string}
 */
function rowsText(nRows) {
  return `${nRows.toLocaleString("en")} row${nRows === 1 ? "" : "s"}`;
}
