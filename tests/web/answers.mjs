// Answers questions of the Python tests: a list of them in one file, their answers in another.
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [, , folder, questionsFile, answersFile] = process.argv;
const { questions, web } = JSON.parse(readFileSync(questionsFile, "utf8"));
const module = (name) => import(pathToFileURL(`${web}/${name}.js`).href);
const { load } = await module("scorer");
const { TextReader } = await module("texts");
const { Unicode, codePoints, textOf } = await module("unicode");
const { readModelFile } = await module("model_file");
const formatting = await module("formatting");
const { readTable, writeRow } = await module("table");
const { View } = await module("view");

const models = new Map();
async function modelOf(name) {
  if (!models.has(name)) models.set(name, await load(readFileSync(`${folder}/${name}.clsattn`)));
  return models.get(name);
}

function viewOf(scorer, text, target) {
  const explanation = scorer.explain(text);
  const view = new View(explanation, target);
  const deletion = explanation.fewestWords({ label: view.severalLabels ? view.k : -1 });
  return {
    start: view.start,
    end: view.end,
    decisionName: view.decisionName,
    sides: view.sides,
    reasons: view.reasons,
    segments: view.segments.map((one) => ({ ...one, shade: view.shade(one.contribution) })),
    lines: view.segments.map((one) => view.linesOf(one)),
    without: view.listed.map((token) => view.decisionWithout(token)),
    remarks: view.remarks(),
    statement: view.statement(deletion),
    classes: view.classesToName(explanation.probabilities),
  };
}

const answer = {
  async predict({ model, texts }) {
    const scorer = await modelOf(model);
    return texts.map((text) => scorer.predict(text));
  },
  async explain({ model, texts }) {
    const scorer = await modelOf(model);
    return texts.map((text) => ({ ...scorer.explain(text), model: null }));
  },
  async fewestWords({ model, texts, label }) {
    const scorer = await modelOf(model);
    return texts.map((text) => scorer.explain(text).fewestWords({ label, timeLimit: 60 }));
  },
  async view({ model, texts, target }) {
    const scorer = await modelOf(model);
    return texts.map((text) => viewOf(scorer, text, target));
  },
  async read({ model, texts, lowercase }) {
    const { header } = await readModelFile(readFileSync(`${folder}/${model}.clsattn`));
    const reader = new TextReader(new Unicode(header.unicode));
    return texts.map((text) => {
      const codes = codePoints(text);
      const form = reader.aligned(codes, lowercase);
      const tokens = reader.tokens(form.codes);
      return {
        normalized: textOf(reader.normalized(codes, lowercase)),
        aligned: textOf(form.codes),
        words: tokens.map(({ word }) => word),
        spans: reader.spansInOriginal(codes, form, tokens),
        spelled: tokens.map(({ word }) =>
          reader.isSpelled(codePoints(word), header.longestSpelled),
        ),
      };
    });
  },
  load: ({ model }) => modelOf(model).then(() => "loaded", String),
  format: ({ name, values }) => values.map((value) => formatting[name](...value)),
  table({ text }) {
    try {
      const { header, rows, separator } = readTable(text);
      return { header, rows, separator, written: rows.map((row) => writeRow(row, separator)) };
    } catch (error) {
      return { error: error.message };
    }
  },
};

const answers = [];
for (const question of questions) answers.push(await answer[question.ask](question));
writeFileSync(answersFile, JSON.stringify(answers));
