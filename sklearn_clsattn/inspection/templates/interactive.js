// What an interactive page does: it asks what if. The page is complete without it.
const page = document.querySelector(".clsattn");
const data = JSON.parse(document.getElementById("clsattn-data").textContent);
const model = data.model && new AttentionModel(data.model);
const labels = model ? model.classes : [];
const binary = labels.length === 2;

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(9).filter((child) => child !== null && child !== ""));
  return made;
}
const button = (attributes, ...children) => element("button", {type: "button", ...attributes}, ...children);

// A name, which may be broken after the signs in it.
const bdi = (text) => element("bdi", null, text.split(/(?<=[_/-])(?=[\p{L}\p{N}_])/u)
  .flatMap((part, at) => at ? [element("wbr"), part] : [part]));

// Numbers, as `formatting.py` writes them
function signed(number) {
  const size = Math.abs(number), sign = number < 0 ? "−" : "+";
  if (size >= 999.5) return sign + Number(size.toPrecision(3));
  if (size < 0.00095 && size) return sign + size.toExponential(0).replace("-", "−");
  return sign + size.toFixed(size && size < 0.0995 ? 3 : 2);
}
// Numbers of a column, with equally many decimals.
function aligned(numbers) {
  const magnitude = Math.floor(Math.log10(Math.max(...numbers.map(Math.abs), 1e-9)));
  if (Math.abs(magnitude) > 5) return numbers.map(signed);
  const decimals = magnitude >= -1 ? Math.max(0, 3 - Math.max(1, magnitude)) : 1 - magnitude;
  return numbers.map((number) => (number < 0 ? "−" : "+") + Math.abs(number).toFixed(decimals));
}
const percent = (share) => share > 0 && share < 0.0005 ? "<0.1%"
  : share < 0.9995 ? (100 * share).toFixed(1) + "%" : "100%";
const quantity = (count) => String(Number.isInteger(count) ? count : Number(count.toPrecision(3)));
const of = (width) => `width:${width.toFixed(1)}%`;

// The stretch between white space that has a place, without the signs around it.
function wordAt(text, place) {
  const start = text.slice(0, place).search(/\S*$/);
  const word = text.slice(start).match(/^\S*/)[0].toLowerCase();
  return word.replace(/^[^\p{L}\p{N}_]+|[^\p{L}\p{N}_]+$/gu, "") || word;
}

// A text as the model reads it, for class k against class j.
function seen(text, k, j) {
  const answer = model.explain(text);
  const {tokens, decision, probabilities} = answer;
  const ranked = probabilities.map((share, at) => at).sort((a, b) => probabilities[b] - probabilities[a]);
  if (k === null) k = ranked[0];
  if (j === null) j = k === ranked[0] ? ranked[1] : ranked[0];
  const margin = (numbers) => binary ? (k ? numbers[0] : -numbers[0]) : numbers[k] - numbers[j];
  const terms = [], numbers = new Map(), n = text.length, edges = new Set([0, n]);
  const adds = new Float64Array(n), attention = new Float64Array(n);
  const members = Array.from({length: n}, () => new Set());
  for (const {token: at, share, spans} of answer.occurrences) {
    const token = tokens[at], added = margin(token.contributions);
    // Character n-grams are listed by their word.
    const spelled = spans && (token.column >= model.n_words || !model.text.by_word);
    const name = spelled ? `${wordAt(text, spans[0][0])} (characters)`
      : token.name.replace(/^ +| +$/g, (spaces) => "␣".repeat(spaces.length));
    if (!numbers.has(name)) {
      numbers.set(name, terms.length);
      terms.push({at: terms.length, name, count: 0, attention: 0, adds: 0});
    }
    const term = terms[numbers.get(name)];
    term.count += share * token.count;
    term.attention += share * token.attention;
    term.adds += share * added;
    for (const [start, stop] of spans || []) {
      const part = share / spans.length / (stop - start);
      if (!spelled) edges.add(start).add(stop);
      for (let i = start; i < stop; i++) {
        attention[i] += part * token.attention;
        adds[i] += part * added;
        members[i].add(term);
      }
    }
  }
  for (let i = 1; i < n; i++) if (!members[i].size !== !members[i - 1].size) edges.add(i);
  const ends = [...edges].sort((a, b) => a - b);
  const segments = ends.slice(1).map((stop, i) => {
    const total = (amounts) => sumOf(amounts.subarray(ends[i], stop));
    const inside = new Set(members.slice(ends[i], stop).flatMap((some) => [...some]));
    return {text: text.slice(ends[i], stop), terms: [...inside], adds: total(adds), attention: total(attention)};
  });
  const largest = Math.max(0, ...terms.map((term) => Math.abs(term.adds)));
  const sides = [1, -1].map((sign) => {
    const all = terms.filter((term) => sign * term.adds > 0).sort((a, b) => sign * (b.adds - a.adds));
    const listed = all.filter((term) => Math.abs(term.adds) >= Math.max(0.005, largest / 2000));
    const total = sumOf(all.map((term) => term.adds));
    return {sign, all, listed: listed.slice(0, data.top), label: `for ${labels[sign > 0 ? k : j]}`, total};
  });
  return {
    answer, k, j, ranked, terms, sides, segments, start: margin(model.intercept), end: margin(decision),
    largest: Math.max(0.05, ...segments.map((one) => Math.abs(one.adds))),
    most: Math.max(0, ...segments.map((one) => one.attention)),
    ordered: j === ranked[0] ? [...sides].reverse() : sides,
  };
}

// The parts of an explanation, as `document.html` has them
function classStrip({answer: {probabilities}, ranked, k, j}, show) {
  const likely = ranked.slice(0, 6).filter((at, place) => place < 2 || at === k || probabilities[at] >= 0.0005);
  const shown = labels.length > 6 ? likely : labels.map((_, at) => at);
  const items = shown.map((at) => element("li", {class: at === k ? "shown" : "soft"},
    button({"aria-pressed": String(at === k), title: `show what speaks for ${labels[at]}`, onclick: () => show(at, null)},
      element("span", null, bdi(labels[at]), " ", element("span", null, percent(probabilities[at]))),
      element("span", {class: "meter"}, element("i", {style: of(100 * probabilities[at])})))));
  if (shown.length < labels.length) items.push(element("li", {class: "soft"}, `and ${labels.length - shown.length} more classes`));
  const long = Math.max(...shown.map((at) => labels[at].length)) > 12;
  const strip = element("ul", {class: "classes" + (long ? " long" : "")}, items);
  if (binary) return [strip];
  const choice = element("select", {onchange: () => show(k, Number(choice.value))},
    labels.map((label, at) => at === k ? "" : element("option", {value: at, selected: at === j}, label)));
  return [strip, element("label", {class: "control"}, bdi(labels[k]), " against ", choice)];
}

function bar({sides, start, end, k, j}) {
  const present = sides.filter((side) => side.total);
  if (!present.length) return "";
  const highest = start + sides[0].total, ends = [start, end, highest, 0];
  const low = Math.min(...ends), width = Math.max(...ends) - low || 1;
  const at = (value) => 1 + 98 * (value - low) / width;
  const left = (value) => `left:${at(value).toFixed(2)}%`;
  const strips = present.map((side) => {
    let here = side.sign > 0 ? start : highest;
    const stop = side.sign > 0 ? highest : end;
    const part = (there, term) => {
      const low = Math.min(here, there), size = at(Math.max(here, there)) - at(low);
      here = there;
      return element("i", {
        class: term ? null : "rest", "data-term": term && term.at, style: `${left(low)};width:${size.toFixed(2)}%`,
        title: term ? `${term.name}: ${signed(term.adds)}` : "all other tokens together",
      }, size > 2 ? bdi(term ? term.name : "others") : "");
    };
    const parts = side.all.slice(0, 6).map((term) => part(here + term.adds, term));
    if (Math.abs(stop - here) > 1e-6) parts.push(part(stop, null));
    return element("span", {class: "strip" + (side.sign < 0 ? " minus" : "")}, parts);
  });
  const tick = (kind, value) => element("span", {class: `tick ${kind}`, style: left(value)});
  return element("div", {class: "bar", role: "img", "aria-label": "the decision as a sum"},
    tick("zero", 0), strips, tick("start", start), tick("end" + (strips.length === 2 ? " second" : ""), end),
    element("span", {class: "axis"},
      at(0) > 8 ? element("span", {class: "left", style: of(at(0))}, element("i", null, "← ", bdi(labels[j]))) : "",
      at(0) < 92 ? element("span", {class: "right", style: left(0)}, element("i", null, bdi(labels[k]), " →")) : ""));
}

function sum({sides, start, end, j}) {
  const number = (value, key) => [key ? element("i", {class: `key ${key}`}) : "", element("b", null, signed(value))];
  return element("p", {class: "sum"},
    element("span", null, number(end, "end"), binary ? " decision =" : ` lead over ${labels[j]} =`),
    element("span", null, number(start, "start"), " intercept"),
    sides.filter((side) => side.total).map((side) => element("span", null,
      number(side.total), " ", element("span", {class: `t ${side.sign > 0 ? "p3" : "n3"}`}, side.label))));
}

function shaded({segments, largest, most}) {
  return element("div", {class: "text", dir: "auto", lang: ""}, segments.map((segment) => {
    if (!segment.terms.length) return segment.text;
    const share = Math.abs(segment.adds) / largest, over = most ? 2 * segment.attention / most - 1 : -1;
    const shade = share < 0.1 ? "" : ` ${segment.adds > 0 ? "p" : "n"}${Math.min(5, 1 + Math.floor(share * 4.9995))}`;
    const outline = over < 0 ? "" : ` a${Math.min(2, 1 + Math.floor(2 * over))}`;
    const terms = segment.terms.sort((a, b) => Math.abs(b.adds) - Math.abs(a.adds));
    return element("span", {
      class: `t${shade}${outline}`, "data-term": terms.map((term) => term.at).join(" "),
      title: [`here ${signed(segment.adds)}, attention ${percent(segment.attention)}, of:`,
        ...terms.map((term) => `${term.name} ×${quantity(term.count)}: ${signed(term.adds)}`)].join("\n"),
    }, segment.text);
  }));
}

function lists({sides, ordered}) {
  const all = sides.flatMap((side) => side.listed);
  const largest = Math.max(0, ...all.map((term) => Math.abs(term.adds)));
  const numbers = aligned(all.map((term) => term.adds));
  const heads = () => ["token", "adds", "attention", "count"].map((head) => element("th", {scope: "col"}, head));
  return element("div", {class: "lists"}, ordered.map(({sign, listed, label}) => {
    const rows = listed.map((term) => element("tr", {"data-term": term.at, tabindex: 0},
      element("th", {scope: "row"},
        element("span", {class: "size", style: of(100 * Math.abs(term.adds) / largest)}), bdi(term.name)),
      [numbers[all.indexOf(term)], percent(term.attention), quantity(term.count)].map((cell) => element("td", null, cell))));
    return element("table", {class: sign < 0 ? "minus" : null},
      element("caption", null, `${sign > 0 ? "+" : "−"} ${label}${rows.length ? "" : ": no token"}`),
      rows.length ? [element("thead", null, element("tr", null, heads())), element("tbody", null, rows)] : "");
  }));
}

function remarks({ordered, answer}) {
  const said = ordered.filter((side) => side.all.length > side.listed.length).map((side) => {
    const adds = side.total - sumOf(side.listed.map((term) => term.adds));
    return `${side.all.length - side.listed.length} more ${side.label} (${signed(adds)})`;
  });
  if (answer.cls) said.push(`<cls>, the classifier's own token, keeps ${percent(answer.cls)} of the attention and adds 0`);
  return said.length ? element("p", {class: "soft small"}, said.join("; ") + ".") : "";
}

// The fewest tokens whose removal changes the prediction: the sign of a margin is a sum over tokens.
function counterfactual({tokens, cls, predicted: k}) {
  let best = null;
  labels.forEach((label, j) => {
    if (j === k) return;
    const margin = (numbers) => binary ? (k ? numbers[0] : -numbers[0]) : numbers[k] - numbers[j];
    const start = margin(model.intercept);
    const parts = tokens.map((token) => [token.attention * (margin(token.values) + start), token.name])
      .sort((a, b) => b[0] - a[0]);
    let left = cls * start + sumOf(parts.map(([part]) => part)), n = 0;
    const rounding = 1e-12 * (Math.abs(cls * start) + sumOf(parts.map(([part]) => Math.abs(part))));
    while (left >= -rounding && n < parts.length && parts[n][0] > 0) left -= parts[n++][0];
    // Without any token and without <cls>, the intercept is all there is.
    const gone = n === parts.length && !cls ? start < 0 : left < -rounding;
    if (gone && (!best || n < best.names.length)) best = {label, names: parts.slice(0, n).map(([, name]) => name)};
  });
  if (!best) return "No removal of tokens changes the prediction.";
  const n = best.names.length, more = n > 6 ? ` and ${n - 6} more` : "";
  const shown = best.names.slice(0, 6).map((name) => `“${name}”`).join(", ");
  return `Without ${n === 1 ? "the token" : `these ${n} tokens`} it is ${best.label}; no fewer would do: ${shown}${more}.`;
}

function whatIf() {
  const box = element("textarea", {id: "clsattn-text", rows: 5, "aria-label": "a text of your own", spellcheck: "false"});
  const head = element("p", {class: "head", "aria-live": "polite"}), body = element("div"), change = element("p", {class: "soft"});
  let chosen = null;  // a class that is not the predicted one
  const show = (k, j) => {
    const view = seen(box.value, k, j), {answer} = view;
    chosen = binary || view.k === answer.predicted ? null : view.k;
    head.replaceChildren(element("span", {class: "prediction"}, "predicted ", element("b", null, bdi(labels[answer.predicted])),
      " with probability ", element("b", null, percent(Math.max(...answer.probabilities)))));
    head.dataset.decision = JSON.stringify(answer.decision);
    body.replaceChildren(...[classStrip(view, show), bar(view), sum(view), shaded(view), lists(view), remarks(view)]
      .flat().filter((part) => part !== ""));
    change.textContent = answer.tokens.length ? counterfactual(answer) : "No token that the model knows: the decision is the intercept.";
  };
  box.addEventListener("input", () => show(chosen, null));
  const {n_tokens: all, tokens} = model, megabytes = document.getElementById("clsattn-data").textContent.length / 1e6;
  const size = megabytes < 0.1 ? `${Math.ceil(1e3 * megabytes)} KB` : `${megabytes.toFixed(1)} MB`;
  const part = tokens.length < all
    ? `the ${tokens.length.toLocaleString("en")} strongest of ${all.toLocaleString("en")} tokens, so that numbers differ from the whole model's`
    : `all ${all.toLocaleString("en")} tokens of the model`;
  const section = element("details", {class: "whatif", open: true},
    element("summary", null, element("b", null, "What if?"), " Write or edit a text; nothing leaves this page."),
    box, head, change, body, element("p", {class: "soft small"}, `This page holds ${part} (${size} of data).`));
  return {section, write: (text) => { box.value = text; section.open = true; show(chosen, null); }};
}

const sections = [...page.querySelectorAll(".doc")];
const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]);
const theme = rules.find(({media}) => media && media.mediaText.includes("prefers-color-scheme"));
let dark = matchMedia("(prefers-color-scheme: dark)").matches;
const toolbar = element("div", {class: "toolbar"},
  button({onclick: () => { dark = !dark; theme.media.mediaText = dark ? "screen" : "not all"; }}, "light / dark"));
page.insertBefore(toolbar, sections[0]);

if (model) {
  const {section, write} = whatIf();
  toolbar.after(section);
  write(data.texts.find((text) => text !== null) || "");
  data.texts.forEach((text, at) => {
    if (text === null) return;
    const edit = button({onclick: () => { write(text); section.scrollIntoView(); }}, "edit");
    (sections[at].querySelector(":scope > details") || sections[at]).append(element("p", {class: "tools"}, edit));
  });
  // A word and the rows of its tokens are marked together.
  const link = ({target}) => {
    const parts = [...section.querySelectorAll("[data-term]")], terms = (one) => one.dataset.term.split(" ");
    const own = target.closest("[data-term]"), wanted = new Set(own ? terms(own) : []);
    parts.forEach((one) => one.classList.toggle("linked", terms(one).some((term) => wanted.has(term))));
  };
  ["mouseover", "focusin", "click"].forEach((event) => section.addEventListener(event, link));
}
