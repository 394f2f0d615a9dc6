// Elements of the page: found, and made.

/**
 * Return the element with an identifier.
 * @param {string} id
 * @returns {any}
 */
export function element(id) {
  return document.getElementById(id);
}

/**
 * Return a new element with children.
 * @param {string} tag
 * @param {Record<string, string>} attributes
 * @param {(Node | string)[]} children
 * @returns {HTMLElement}
 */
export function create(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
