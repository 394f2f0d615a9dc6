// The model's file, which gzip has checked: unpacked and read.

const FORMAT = "sklearn-clsattn";
const VERSION = 1;
const ALIGNMENT = 8; // bytes
// Little-endian, as all machines are that run browsers.
const STORED = {
  uint8: Uint8Array,
  float16: Uint16Array,
  float32: Float32Array,
  float64: Float64Array,
};

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
 * @property {{name: string, type: keyof typeof STORED, length: number, shift: number,
 *   scale: number}[]} arrays
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
  const [size] = new Uint32Array(bytes.buffer, 0, 1);
  /** @type {Header} */
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
  check(header.format === FORMAT, "it has another format");
  check(header.version === VERSION, `it has version ${header.version}, expected ${VERSION}`);
  /** @type {Record<string, Numbers>} */
  const arrays = {};
  let start = padded(4 + size);
  for (const { name, type, length, shift, scale } of header.arrays) {
    const stored = new STORED[type](bytes.buffer, start, length);
    start = padded(start + stored.byteLength);
    const array = stored instanceof Uint16Array ? Float64Array.from(stored, halfFloat) : stored;
    if (shift !== 0 || scale !== 1) {
      array.forEach((number, at) => (array[at] = shift + scale * number));
    }
    arrays[name] = array;
  }
  return { header, arrays };
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
