// The declared types are those of the script, and serve a user of the module.
import { load as loadScript, Scorer } from "../../sklearn_clsattn/portable/web/scorer.js";
import type * as declared from "../../sklearn_clsattn/portable/web/types";

export const asDeclared = (scorer: Scorer): declared.Scorer => scorer;
export const load: typeof declared.load = loadScript;

export async function classify(file: Uint8Array, text: string): Promise<declared.Label[]> {
  const scorer = await load(file);
  const { label, numbers, probabilities }: declared.Prediction = scorer.predict(text);
  const explanation: declared.Explanation = scorer.explain(text);
  const [token]: declared.ExplainedToken[] = explanation.tokens;
  const without = explanation.decisionsWithout(token);
  const deletion: declared.Deletion = explanation.fewestWords({ timeLimit: 1 });
  const sum = without[0] + probabilities[numbers[0]] + deletion.probability;
  return [label, sum, explanation.without(deletion.spans)].flat();
}
