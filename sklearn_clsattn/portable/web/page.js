// The page: the model is read, and its parts are started. The same script runs the workers.

import { create, element } from "./elements.js";
import { visible } from "./formatting.js";
import { Helper } from "./helper.js";
import { load } from "./scorer.js";
import { TablePart } from "./table_part.js";
import { TextPart } from "./text_part.js";
import { startWorker } from "./worker.js";

/**
 * What the caller says of the model.
 * @typedef {object} PageData
 * @property {string[]} examples
 * @property {Record<string, string>} about
 */

const EXAMPLE_LENGTH = 60; // characters
const MOST_CLASSES = 6; // to name

/**
 * Return the bytes of text in base 64.
 * @param {string} text
 * @returns {Uint8Array}
 */
function bytesOfBase64(text) {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = characters.charCodeAt(at);
  return bytes;
}

/**
 * Return classes in a sentence.
 * @param {string[]} labels
 * @returns {string}
 */
function named(labels) {
  if (labels.length > MOST_CLASSES) return `${labels.length} classes`;
  return `${labels.slice(0, -1).join(", ")} or ${labels[labels.length - 1]}`;
}

/** Read the model, and show the page. */
async function startPage() {
  element("state").textContent = "Reading the model …";
  try {
    /** @type {PageData} */
    const { examples, about } = JSON.parse(element("data").textContent);
    const file = bytesOfBase64(element("model").textContent);
    const scorer = await load(file);
    element("intro").textContent = scorer.severalLabels
      ? "Type a text: this page finds its labels, and shows which words speak for what."
      : `Type a text: this page sorts it into ${named(scorer.labels)}, and shows which words ` +
        "speak for what.";
    const facts = [];
    for (const [name, fact] of Object.entries(about)) {
      facts.push(create("dt", {}, visible(name)), create("dd", {}, visible(fact)));
    }
    element("about").replaceChildren(...facts);
    const buttons = examples.map((example) => {
      const short =
        example.length > EXAMPLE_LENGTH ? `${example.slice(0, EXAMPLE_LENGTH)}…` : example;
      const button = create("button", { type: "button", dir: "auto" }, visible(short));
      button.addEventListener("click", () => {
        element("text").value = example;
        element("text").dispatchEvent(new Event("input"));
      });
      return button;
    });
    const examplesTitle = element("examplestitle");
    examplesTitle.after(...buttons);
    examplesTitle.parentElement.hidden = !buttons.length;
    element("text").value ||= examples[0] ?? "";
    element("app").hidden = false;
    element("state").hidden = true;
    new TextPart(scorer, new Helper(file));
    new TablePart(new Helper(file));
  } catch (error) {
    const { message } = /** @type {Error} */ (error);
    element("state").textContent = `This page cannot be read: ${message}`;
  }
}

if (typeof document === "undefined") startWorker();
else void startPage();
