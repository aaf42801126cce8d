/** Making and updating elements. What comes from the network is only ever put in as text. */

const SVG = "http://www.w3.org/2000/svg";

/** @param {string} id @returns {any} */
export const element = (id) => document.getElementById(id);

/** @param {string} name @param {Record<string, any>} [attributes] @param {...(Node | string)} children */
export function make(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** @param {string} name @param {Record<string, any>} [attributes] @param {...(Node | string)} children */
export function makeSvg(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

/** @param {any} made @param {Record<string, any>} attributes @param {(Node | string)[]} children */
function filled(made, attributes, children) {
  set(made, attributes);
  made.append(...children);
  return made;
}

/** @param {Element} target @param {Record<string, any>} attributes */
export function set(target, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (target.getAttribute(name) !== String(value)) target.setAttribute(name, value);
  }
}

/** @param {Element} target @param {any} text */
export function write(target, text) {
  if (target.textContent !== String(text)) target.textContent = text;
}

/**
 * One child per item, in their order; a child stays the same element as long as its item's key is there, so that
 * neither focus nor a transition is lost.
 * @template Item
 * @param {Element} parent
 * @param {Item[]} items
 * @param {(item: Item) => string} keyOf
 * @param {(item: Item) => any} create
 * @param {(child: any, item: Item) => void} update
 */
export function keyed(parent, items, keyOf, create, update) {
  const before = new Map([...parent.children].map((child) => [child.getAttribute("data-key"), child]));
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    let child = before.get(key);
    before.delete(key);
    if (!child) {
      child = create(item);
      child.setAttribute("data-key", key);
    }
    update(child, item);
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
  }
  for (const child of before.values()) child.remove();
}
