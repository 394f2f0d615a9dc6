// The model's file, which gzip has checked: unpacked and read, and its terms, which stay packed.

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

/** The terms of a vocabulary, numbered in the order of their code units. */
export class SortedTerms {
  /**
   * @param {string} rest of each term what it does not share with the one before, on a line each
   * @param {ArrayLike<number>} shared how many code units each shares
   * @param {number} block of so many terms, the first shares none
   */
  constructor(rest, shared, block) {
    this.rest = rest;
    this.shared = shared;
    this.block = block;
    /** where each block starts */
    this.starts = [0];
    let at = 0;
    for (let number = 1; number < shared.length; number++) {
      at = rest.indexOf("\n", at) + 1;
      if (number % block === 0) this.starts.push(at);
    }
  }

  /**
   * Return the number of a term, -1 for one that is not among these.
   * @param {string} term
   * @returns {number}
   */
  find(term) {
    if (!this.shared.length) return -1;
    // 1) The last block that starts with the term, or one before it.
    let low = 0;
    let high = this.starts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.#line(this.starts[middle]) <= term) low = middle;
      else high = middle;
    }
    // 2) The terms of this block, one after the other.
    let at = this.starts[low];
    let found = "";
    const first = low * this.block;
    const last = Math.min(first + this.block, this.shared.length);
    for (let number = first; number < last; number++) {
      const line = this.#line(at);
      at += line.length + 1;
      found = found.slice(0, this.shared[number]) + line;
      if (found === term) return number;
      if (found > term) return -1;
    }
    return -1;
  }

  /**
   * Return the line that starts at a place.
   * @param {number} start
   * @returns {string}
   */
  #line(start) {
    const stop = this.rest.indexOf("\n", start);
    return this.rest.slice(start, stop < 0 ? undefined : stop);
  }
}
