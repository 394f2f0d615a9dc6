// Sorted terms, as the model's file has them: looked up without unpacking them all.

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
