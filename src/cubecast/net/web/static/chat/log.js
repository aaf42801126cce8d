/** The messages as they are shown, in the order they were delivered. */

const MOST_SHOWN = 500;
const LONGEST_QUOTE = 80;

const element = (id) => document.getElementById(id);

/** @param {string} name @param {Record<string, string>} attributes @param {...(Node | string)} children */
function make(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export class Log {
  #list;
  #name;
  /** @type {Map<string, string>} what each message that was shown said, for those who answer it */
  #said = new Map();
  /** @type {Map<string, string>} what became of own messages before they were shown */
  #fates = new Map();
  #sent = 0;
  #lastBy = "";
  #answering = "";
  #session = crypto.getRandomValues(new Uint32Array(2)).join("");

  /** @param {HTMLElement} list @param {string} name */
  constructor(list, name) {
    this.#list = list;
    this.#name = name;
    element("no-answer").addEventListener("click", () => this.#answer(""));
  }

  /** @returns {[Record<string, string>, string]} the headers of what is sent next, and its key */
  sending() {
    const key = `${this.#session}-${++this.#sent}`;
    const headers = { by: this.#name, key };
    if (this.#answering) headers.re = this.#answering;
    this.#answer("");
    return [headers, key];
  }

  /** @param {import("../cubecast.js").Message} message */
  message(message) {
    const { by = "?", key = message.id, re } = message.headers;
    const text = message.text();
    const isOwn = key.startsWith(this.#session);
    const shown = make("li", { class: "message", "data-key": key, "data-by": by });
    shown.classList.toggle("own", isOwn);
    shown.classList.toggle("same", by === this.#lastBy && !re);
    const bubble = make("button", { type: "button", class: "bubble", title: "answer this" });
    if (re) bubble.append(this.#quote(shown, re));
    bubble.append(text);
    bubble.addEventListener("click", () => this.#answer(key));
    shown.append(make("div", { class: "who" }, by), bubble);
    if (isOwn) shown.append(make("span", { class: "mark" }, this.#fates.get(key) ?? "on its way"));
    this.#fates.delete(key);
    this.#said.set(key, `${by}: ${text}`);
    this.#lastBy = by;
    this.#show(shown);
  }

  /** @param {HTMLElement} shown @param {string} re */
  #quote(shown, re) {
    const said = this.#said.get(re);
    if (said === undefined) shown.classList.add("orphan");
    shown.dataset.re = re;
    return make("span", { class: "quote" }, (said ?? "something said before you came").slice(0, LONGEST_QUOTE));
  }

  /** @param {string} key of the message the next one answers; empty for none */
  #answer(key) {
    this.#answering = key;
    element("answering").hidden = !key;
    element("answering-text").textContent = (this.#said.get(key) ?? "").slice(0, LONGEST_QUOTE);
    if (key) element("text").focus();
  }

  /** @param {string} key */
  reached(key) {
    this.#mark(key, "reached everybody");
  }

  /** @param {string} key @param {string} text @param {Error} error */
  failed(key, text, error) {
    this.#mark(key, "not known whether it reached everybody");
    if (error.name === "BadInput") this.notice(`“${text.slice(0, LONGEST_QUOTE)}” was refused: ${error.message}`);
  }

  /** @param {string} key @param {string} fate */
  #mark(key, fate) {
    const mark = this.#list.querySelector(`[data-key="${CSS.escape(key)}"] .mark`);
    if (mark) mark.textContent = fate;
    else this.#fates.set(key, fate);
  }

  /** @param {import("../cubecast.js").Gap} gap */
  gap(gap) {
    const some = gap.count ? `${gap.count} messages are missing here` : "something may be missing here";
    this.notice(`${some}: ${gap.reason}`);
  }

  /** @param {string} text */
  notice(text, quiet = false) {
    this.#lastBy = "";
    this.#show(make("li", { class: quiet ? "notice quiet" : "notice" }, text));
  }

  /** @param {HTMLElement} shown */
  #show(shown) {
    const list = this.#list;
    const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    list.append(shown);
    while (list.children.length > MOST_SHOWN) this.#drop(list.firstElementChild);
    if (isAtEnd) list.scrollTop = list.scrollHeight;
  }

  /** @param {Element} oldest */
  #drop(oldest) {
    this.#said.delete(oldest.getAttribute("data-key") ?? "");
    oldest.remove();
  }
}
