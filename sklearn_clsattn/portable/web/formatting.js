// Numbers and names as text, as explanations in Python have them.

const MINUS = "\u2212";
// Control characters but tab and new line, line separators, marks of direction, surrogates.
const ACTING =
  // eslint-disable-next-line no-control-regex -- which are what is replaced
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]|\p{Surrogate}/gu;
const N_SHADES = 5;

/**
 * Return a text that does not control the text around it.
 * @param {string} text
 * @param {boolean} [keepsLines]
 * @returns {string}
 */
export function visible(text, keepsLines = false) {
  let shown = text.replaceAll("\r\n", "\n");
  if (!keepsLines) shown = shown.replaceAll("\n", " ").replaceAll("\t", " ");
  return shown.replace(ACTING, "\ufffd");
}

/**
 * Return the name of a word on one line.
 * @param {string} name
 * @returns {string}
 */
export function tokenText(name) {
  return visible(name).replace(/^ +| +$/g, (spaces) => "␣".repeat(spaces.length));
}

/**
 * Return a number with so many decimals; of two that are as near, the even one, as in Python.
 * @param {number} number
 * @param {number} decimals
 * @returns {string}
 */
export function fixed(number, decimals) {
  const scaled = Math.abs(number) * 10 ** decimals;
  const isTie = Number.isInteger(number * 2 ** (decimals + 1)) && scaled % 1 === 0.5;
  const below = Math.floor(scaled);
  if (!isTie || below % 2) return number.toFixed(decimals);
  return (Math.sign(number) * (below / 10 ** decimals)).toFixed(decimals);
}

/**
 * Return a number with its sign.
 * @param {number} number
 * @param {number} decimals
 * @returns {string}
 */
function withSign(number, decimals) {
  const sign = number < 0 || Object.is(number, -0) ? MINUS : "+";
  return sign + fixed(Math.abs(number), decimals);
}

/**
 * Return a number with its sign and two or three digits, such as "+0.31".
 * @param {number} number
 * @returns {string}
 */
export function signed(number) {
  const size = Math.abs(number);
  if (size >= 999.5) return (number < 0 ? MINUS : "+") + threeDigits(size);
  if (size >= 0.0995 || size === 0) return withSign(number, 2);
  if (size >= 0.00095) return withSign(number, 3);
  const [digits, power] = size.toExponential(0).split("e-");
  return `${number < 0 ? MINUS : "+"}${digits}e${MINUS}${power.padStart(2, "0")}`;
}

/**
 * Return a positive number with three digits, as "%.3g" does.
 * @param {number} number
 * @returns {string}
 */
export function threeDigits(number) {
  let [digits, power] = number.toExponential(2).split("e").map(Number);
  // Of two that are as near, toExponential takes the larger, and Python the even one.
  const below = Math.round(100 * digits) - 1;
  if (below % 2 === 0 && (below + 0.5) * 10 ** (power - 2) === number) digits = below / 100;
  if (power >= -4 && power < 3) return String(Number(fixed(number, 2 - power)));
  const size = String(Math.abs(power)).padStart(2, "0");
  return `${digits}e${power < 0 ? "-" : "+"}${size}`;
}

/**
 * Return signed numbers with equally many decimals, to be aligned in a column; "–" for null.
 * @param {(number | null)[]} numbers
 * @returns {string[]}
 */
export function aligned(numbers) {
  const decimals = decimalsOf(largestOf(numbers));
  return numbers.map((number) => {
    if (number === null) return "–";
    return decimals === null ? signed(number) : withSign(number, decimals);
  });
}

/**
 * Return whether `aligned` writes a number as 0 beside the largest.
 * @param {number} number
 * @param {number} largest
 * @returns {boolean}
 */
export function roundsToNothing(number, largest) {
  const decimals = decimalsOf(largest);
  return decimals !== null && Math.abs(number) < 0.5 * 10 ** -decimals;
}

/**
 * Return weights with equally many decimals, to be aligned in a column.
 * @param {number[]} weights
 * @returns {string[]}
 */
export function weightColumn(weights) {
  const largest = Math.max(0, ...weights);
  const decimals = decimalsOf(largest);
  const areWhole = weights.every(Number.isInteger);
  return weights.map((weight) => {
    if (areWhole || decimals === null) return weightText(weight);
    const isSeen = weight === 0 || !roundsToNothing(weight, largest);
    return isSeen ? fixed(weight, decimals) : weightText(weight);
  });
}

/**
 * Return a weight, such as "2" or "0.31".
 * @param {number} weight
 * @returns {string}
 */
export function weightText(weight) {
  return Number.isInteger(weight) && weight < 1e6 ? fixed(weight, 0) : threeDigits(weight);
}

/**
 * Return a share between 0 and 1 in percent, such as "3.1%".
 * @param {number} share
 * @returns {string}
 */
export function percent(share) {
  if (share >= 1) return "100%";
  if (share >= 0.9995) return ">99.9%";
  if (share > 0 && share < 0.0005) return "<0.1%";
  return `${fixed(100 * share, 1)}%`;
}

/**
 * Return the level of a size, from 0 (below a tenth of the largest) to 5.
 * @param {number} size
 * @param {number} largest
 * @returns {number}
 */
export function level(size, largest) {
  const share = largest > 0 ? Math.abs(size) / largest : 0;
  if (share < 0.1) return 0;
  return Math.min(N_SHADES, 1 + Math.floor(share * N_SHADES * 0.9999));
}

/**
 * Return the decimals of numbers up to `largest`; null where each has its own.
 * @param {number} largest
 * @returns {number | null}
 */
function decimalsOf(largest) {
  const magnitude = largest > 0 ? Math.floor(Math.log10(largest)) : 0;
  if (magnitude < -5 || magnitude > 5) return null;
  if (magnitude < -1) return 1 - magnitude;
  return Math.max(0, 3 - Math.max(1, magnitude));
}

/**
 * Return the largest size of some numbers.
 * @param {(number | null)[]} numbers
 * @returns {number}
 */
export function largestOf(numbers) {
  return numbers.reduce((/** @type {number} */ most, one) => Math.max(most, Math.abs(one ?? 0)), 0);
}
