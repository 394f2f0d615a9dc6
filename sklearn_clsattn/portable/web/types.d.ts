/** A class of a model, as Python has it. */
export type Label = string | number | boolean;

/** A part of a text, in characters (code points): its start and its stop. */
export type Span = [start: number, stop: number];

/** What a model predicts for a text. */
export interface Prediction {
  /** The predicted class, or those of several labels. */
  label: Label | Label[];
  /** The number of the predicted class among the classes, or those of several labels. */
  numbers: number[];
  /** The probabilities of the classes; with several labels, they do not add up to 1. */
  probabilities: number[];
  /** A decision for each class; for two classes one, the log-odds of the second. */
  decisions: number[];
}

/** A word or word n-gram of a text. Its numbers are for each of the decisions. */
export interface ExplainedToken {
  name: string;
  /** How often it occurs, damped, and weighted by position and by the word before. */
  weight: number;
  /** Its share of the text's attention. */
  attention: number;
  /** What it adds to each decision. */
  contributions: number[];
  /** The same without its character n-grams; null if it has none, or is unknown. */
  ownContributions: number[] | null;
  /** Whether the vocabulary has it; else it is scored by its letters. */
  isKnown: boolean;
  /** Where it stands: the number of its first word, how many words, its share of the weight. */
  occurrences: { first: number; length: number; share: number }[];
}

/** The fewest words that were found whose deletion changes the prediction. */
export interface Deletion {
  found: boolean;
  /** The words, the most effective first. */
  words: string[];
  /** Where they stand in the text. */
  spans: Span[];
  /** The text without them, which was predicted. */
  editedText: string;
  /** The number of the class that is predicted for the text. */
  before: number;
  /** The same for the edited text. */
  after: number;
  /** The probability of this class for the edited text. */
  probability: number;
  /** No smaller set will do: all were tried. Null if none will. */
  atLeast: number | null;
}

/** What each word of a text adds to the decisions: with the intercepts, they are the sums. */
export interface Explanation {
  readonly text: string;
  readonly tokens: ExplainedToken[];
  /** The words of the text that the model reads, and those that it ignores. */
  readonly words: Span[];
  readonly ignored: Span[];
  readonly intercept: number[];
  readonly decisions: Float64Array;
  readonly probabilities: number[];
  /** The numbers of the predicted classes. */
  readonly predicted: number[];
  /** The share of the attention that goes to no word. */
  readonly clsAttention: number;
  /** Return the text without some spans of it, which are in order. */
  without(spans: Span[]): string;
  /** Return the decisions for the text without all words of a token. */
  decisionsWithout(token: ExplainedToken): Float64Array;
  /** Return the fewest words whose deletion changes the prediction, or that of one label. */
  fewestWords(options?: { label?: number; timeLimit?: number }): Deletion;
}

/** A model of texts. */
export declare class Scorer {
  readonly classes: Label[];
  /** The classes as they are shown. */
  readonly labels: string[];
  readonly severalLabels: boolean;
  predict(text: string): Prediction;
  explain(text: string): Explanation;
}

/**
 * Return the model in a file, given its bytes.
 *
 * Throws an error if the file is damaged, or of another version.
 */
export declare function load(file: ArrayBuffer | Uint8Array): Promise<Scorer>;
