// The model's file: read, unpacked and checked.

const FORMAT = "sklearn-clsattn";
const VERSION = 1;
const ALIGNMENT = 8; // bytes

/**
 * What the file says beside its arrays.
 * @typedef {object} Header
 * @property {string} format
 * @property {number} version
 * @property {(string | number | boolean)[]} classes
 * @property {string[]} labels the names of the classes
 * @property {string[]} notLabels the names of having one of several labels not
 * @property {boolean} severalLabels
 * @property {boolean} lowercase
 * @property {string[]} stopWords
 * @property {[number, number]} ngramRange
 * @property {[number, number] | null} characters
 * @property {number} characterWeight
 * @property {number} longestSpelled
 * @property {number} gatePower
 * @property {number} largestGateScore
 * @property {number} block
 * @property {string[]} previousWords
 * @property {number} clsWeight
 * @property {number} clsScore
 * @property {number[]} intercept
 * @property {string} terms
 * @property {string} characterNgrams
 * @property {import("./unicode.js").Tables} unicode
 * @property {{name: string, type: string, length: number, shift: number, scale: number}[]} arrays
 */

/** @typedef {Uint8Array | Float32Array | Float64Array} Numbers */

/**
 * Return the header and the arrays of a model's file.
 * @param {Uint8Array} file
 * @returns {Promise<{header: Header, arrays: Record<string, Numbers>}>}
 */
export async function readModelFile(file) {
  const bytes = await unpacked(file);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const size = bytes.length >= 4 ? view.getUint32(0, true) : 0;
  check(size > 0 && bytes.length >= 4 + size, "it is cut off");
  const header = readHeader(bytes.subarray(4, 4 + size));
  /** @type {Record<string, Numbers>} */
  const arrays = {};
  let start = padded(4 + size);
  for (const { name, type, length, shift, scale } of header.arrays) {
    check(isCount(length) && Number.isFinite(shift) && scale > 0, "an array has no length");
    const array = readArray(view, start, type, length);
    if (shift !== 0 || scale !== 1) {
      array.forEach((number, at) => (array[at] = shift + scale * number));
    }
    check(array.every(Number.isFinite), `${name} has numbers that are not finite`);
    check(name.startsWith("shared") === (type === "uint8"), `${name} has the type ${type}`);
    arrays[name] = array;
    start = padded(start + length * bytesOf(type));
  }
  checkLengths(header, arrays);
  return { header, arrays };
}

/**
 * Return the bytes of a file that gzip has compressed.
 * @param {Uint8Array} file
 * @returns {Promise<Uint8Array>}
 */
async function unpacked(file) {
  const stream = new Blob([/** @type {BlobPart} */ (file)])
    .stream()
    .pipeThrough(new DecompressionStream("gzip"));
  try {
    return new Uint8Array(await new Response(stream).arrayBuffer());
  } catch {
    return refuse("it is damaged");
  }
}

/**
 * Return the header in some bytes.
 * @param {Uint8Array} bytes
 * @returns {Header}
 */
function readHeader(bytes) {
  /** @type {Header} */
  let header;
  try {
    header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return refuse("it is damaged");
  }
  check(header?.format === FORMAT, "it has another format");
  check(header.version === VERSION, `it has version ${header.version}, expected ${VERSION}`);
  for (const [name, isValid] of Object.entries(VALID)) {
    check(isValid(header[/** @type {keyof Header} */ (name)]), `its ${name} is not valid`);
  }
  return header;
}

const isCount = (/** @type {any} */ value) => Number.isInteger(value) && value >= 0;
const isPositive = (/** @type {any} */ value) => Number.isFinite(value) && value > 0;
const isText = (/** @type {any} */ value) => typeof value === "string";
const isTruth = (/** @type {any} */ value) => typeof value === "boolean";
const isRange = (/** @type {any} */ value) =>
  Array.isArray(value) && value.every(isCount) && 0 < value[0] && value[0] <= value[1];
const areTexts = (/** @type {any} */ value) => Array.isArray(value) && value.every(isText);

/** @type {Record<string, (value: any) => boolean>} */
const VALID = {
  classes: (value) => Array.isArray(value) && value.length > 0,
  labels: areTexts,
  notLabels: areTexts,
  severalLabels: isTruth,
  lowercase: isTruth,
  stopWords: areTexts,
  ngramRange: isRange,
  characters: (value) => value === null || isRange(value),
  characterWeight: isPositive,
  longestSpelled: isCount,
  gatePower: isPositive,
  largestGateScore: isPositive,
  block: (value) => isCount(value) && value > 0,
  previousWords: areTexts,
  clsWeight: (value) => Number.isFinite(value) && value >= 0,
  clsScore: Number.isFinite,
  intercept: (value) => Array.isArray(value) && value.every(Number.isFinite),
  terms: isText,
  characterNgrams: isText,
  unicode: isUnicode,
  arrays: (value) => Array.isArray(value) && value.every((one) => isText(one?.name)),
};

/**
 * Return whether tables of Unicode are complete.
 * @param {import("./unicode.js").Tables} tables
 * @returns {boolean}
 */
function isUnicode(tables) {
  const maps = [tables?.folded, tables?.plain, tables?.decomposed];
  const lists = [tables?.properties, tables?.clusterClasses, tables?.kinds, tables?.runs];
  if (!lists.every(Array.isArray) || !isText(tables.notComposed)) return false;
  if (!maps.every((map) => Array.isArray(map?.runs) && isText(map.become))) return false;
  const areKinds = tables.runs.every((run) => isCount(run?.[0]) && run[1] in tables.kinds);
  const nCharacters = tables.runs.reduce((sum, [length]) => sum + length, 0);
  return areKinds && nCharacters === 0x110000 && tables.kinds.every((kind) => kind.every(isCount));
}

/**
 * Return an array of little-endian numbers; those of 16 bits are read in 64.
 * @param {DataView} view
 * @param {number} start
 * @param {string} type
 * @param {number} length
 * @returns {Numbers}
 */
function readArray(view, start, type, length) {
  const size = bytesOf(type);
  check(start + length * size <= view.byteLength, "it is cut off");
  if (type === "uint8") return new Uint8Array(view.buffer, view.byteOffset + start, length);
  const array = type === "float32" ? new Float32Array(length) : new Float64Array(length);
  for (let at = 0; at < length; at++) {
    const from = start + at * size;
    if (type === "float16") array[at] = halfFloat(view.getUint16(from, true));
    else if (type === "float32") array[at] = view.getFloat32(from, true);
    else array[at] = view.getFloat64(from, true);
  }
  return array;
}

/**
 * Return the number that 16 bits stand for.
 * @param {number} bits
 * @returns {number}
 */
function halfFloat(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return (sign * fraction) / 2 ** 24;
  if (exponent === 31) return NaN; // or infinite
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/**
 * Check that arrays have the lengths that other parts of the file say.
 * @param {Header} header
 * @param {Record<string, Numbers>} arrays
 */
function checkLengths(header, arrays) {
  const nTerms = arrays.sharedOfTerms?.length ?? -1;
  const nCharacters = arrays.sharedOfCharacters?.length ?? -1;
  const nTokens = nTerms + nCharacters;
  const nOutputs = header.intercept.length;
  const isOfTwo = header.classes.length === 2 && !header.severalLabels;
  check(nOutputs === (isOfTwo ? 1 : header.classes.length), "it has too few intercepts");
  const nClasses = header.classes.length;
  const nNames = [header.labels.length, header.notLabels.length];
  check(
    nNames.every((n) => n === nClasses),
    "a class has no label",
  );
  const nOrders = header.ngramRange[1] - header.ngramRange[0] + 1;
  const nCells = (arrays.startScores?.length ?? 0) / nOrders;
  /** @type {Record<string, number>} */
  const lengths = { scores: nTokens, startScores: nOrders * nCells, endScores: nOrders * nCells };
  lengths.previousScores = header.previousWords.length;
  for (let output = 0; output < nOutputs; output++) lengths[`values${output}`] = nTokens;
  for (const [name, length] of Object.entries(lengths)) {
    check(arrays[name]?.length === length, `${name} must have ${length} numbers`);
  }
  check(nCells >= 1 && Number.isInteger(nCells), "positions have no scores");
  check(countLines(header.terms) === nTerms, "it has too few terms");
  check(countLines(header.characterNgrams) === nCharacters, "it has too few character n-grams");
}

/**
 * Return the number of lines of a text.
 * @param {string} text
 * @returns {number}
 */
function countLines(text) {
  if (text === "") return 0;
  let n = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) n++;
  return n;
}

/**
 * Return the number of bytes of a number.
 * @param {string} type
 * @returns {number}
 */
function bytesOf(type) {
  const sizes = { uint8: 1, float16: 2, float32: 4, float64: 8 };
  const size = sizes[/** @type {keyof typeof sizes} */ (type)];
  check(size !== undefined, `numbers of type ${type} are unknown`);
  return size;
}

/**
 * Return the next place at which an array may start.
 * @param {number} place
 * @returns {number}
 */
function padded(place) {
  return Math.ceil(place / ALIGNMENT) * ALIGNMENT;
}

/**
 * Throw an error unless a condition holds.
 * @param {boolean} condition
 * @param {string} says
 */
function check(condition, says) {
  if (!condition) refuse(says);
}

/**
 * Throw an error.
 * @param {string} says
 * @returns {never}
 */
function refuse(says) {
  throw new Error(`This is no model that can be read: ${says}.`);
}
