// Times of a model's module in Node, and what it predicts: `node portable.mjs FOLDER TEXTS ANSWERS`.
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [, , folder, textsFile, answersFile] = process.argv;
const { load } = await import(pathToFileURL(`${folder}/scorer.js`).href);
const { texts, timed } = JSON.parse(readFileSync(textsFile, "utf8"));

const bytes = readFileSync(`${folder}/model.clsattn`);
const start = performance.now();
const scorer = await load(bytes);
scorer.predict(timed[0]);
const first = performance.now() - start;

const median = (/** @type {number[]} */ values) =>
  values.sort((one, other) => one - other)[values.length >> 1];
const timeOf = (/** @type {() => void} */ call) => {
  const before = performance.now();
  call();
  return performance.now() - before;
};
const ofTexts = timed.slice(1).map((text) => timeOf(() => scorer.predict(text)));
const strikes = timed.slice(1).map((text) => {
  const explanation = scorer.explain(text);
  const { words } = explanation;
  return timeOf(() => scorer.predict(explanation.without([words[words.length >> 1]])));
});
const predictions = texts.map((text) => {
  const { numbers, probabilities } = scorer.predict(text);
  return { numbers, probabilities };
});
const times = { first, text: median(ofTexts), strike: median(strikes) };
writeFileSync(answersFile, JSON.stringify({ times, predictions }));
