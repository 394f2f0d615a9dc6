// The model's file, which gzip has checked: unpacked and read.

const FORMAT = "sklearn-clsattn";
const VERSION = 1;
const ALIGNMENT = 8; // bytes
/** @type {Record<string, number>} */
const BYTES = { uint8: 1, float16: 2, float32: 4, float64: 8 };

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
  const stream = new Blob([/** @type {BlobPart} */ (file)])
    .stream()
    .pipeThrough(new DecompressionStream("gzip"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const view = new DataView(bytes.buffer);
  const size = view.getUint32(0, true);
  /** @type {Header} */
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
  check(header.format === FORMAT, "it has another format");
  check(header.version === VERSION, `it has version ${header.version}, expected ${VERSION}`);
  /** @type {Record<string, Numbers>} */
  const arrays = {};
  let start = padded(4 + size);
  for (const { name, type, length, shift, scale } of header.arrays) {
    const array = readArray(view, start, type, length);
    if (shift !== 0 || scale !== 1) {
      array.forEach((number, at) => (array[at] = shift + scale * number));
    }
    arrays[name] = array;
    start = padded(start + length * BYTES[type]);
  }
  return { header, arrays };
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
  if (type === "uint8") return new Uint8Array(view.buffer, start, length);
  const array = type === "float32" ? new Float32Array(length) : new Float64Array(length);
  for (let at = 0; at < length; at++) {
    const from = start + at * BYTES[type];
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
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
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
  if (!condition) throw new Error(`This is no model that can be read: ${says}.`);
}
