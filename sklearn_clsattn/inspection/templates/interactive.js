// What an interactive page of explanations does. The page is complete without it.
const page = document.querySelector(".clsattn");
const data = JSON.parse(document.getElementById("clsattn-data").textContent);
const binary = data.classes.length === 2;
const model = data.model && new AttentionModel(data.model);

// Elements

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(9).filter((child) => child !== null && child !== ""));
  return made;
}

// A name, which may be broken after the signs in it.
const bdi = (text) => element("bdi", null, text.split(/(?<=[_/-])(?=[\p{L}\p{N}_])/u)
  .flatMap((part, at) => at ? [element("wbr"), part] : [part]));

// Numbers, as `formatting.py` writes them

const minus = (text) => text.replace("-", "−");

function signed(number) {
  const size = Math.abs(number), sign = number < 0 ? "-" : "+";
  if (size >= 999.5) return minus(sign + Number(size.toPrecision(3)));
  if (size >= 0.0995 || size === 0) return minus(sign + size.toFixed(2));
  if (size >= 0.00095) return minus(sign + size.toFixed(3));
  return minus(sign + size.toExponential(0));
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
const quantity = (count) => Number.isInteger(count) ? String(count) : String(Number(count.toPrecision(3)));

// A document seen for one class, against another (-1: none). For two classes the numbers are those
// of the first of `one.classes`; the other's are the same with the other sign.

function seen(one, k, j) {
  const lead = binary ? (of) => (k ? -1 : 1) * of[0] : (of) => of[k] - (j < 0 ? 0 : of[j]);
  const names = binary ? [one.classes[0], data.classes.find((label) => label !== one.classes[0])]
    : one.classes;
  const rival = binary ? names[1 - k] : j < 0 ? null : names[j];
  const terms = one.terms.map(([name, count, attention, ...of], at) =>
    ({at, name, count, attention, adds: lead(of)}));
  const sides = [1, -1].map((sign) => {
    const all = terms.filter((term) => sign * term.adds > 0)
      .sort((a, b) => sign * (b.adds - a.adds));
    const largest = Math.max(0, ...terms.map((term) => Math.abs(term.adds)));
    const listed = all.slice(0, data.top).filter((term) => Math.abs(term.adds) >= Math.max(0.005, largest / 2000));
    return {
      sign, all, listed, label: sign > 0 ? `for ${names[k]}` : rival === null ? `against ${names[k]}` : `for ${rival}`,
      total: all.reduce((sum, term) => sum + term.adds, 0) + sign * Math.max(0, sign * lead(one.others.slice(1))),
    };
  });
  const pieces = one.texts.map(([name, of]) => [name, of.map(([text, own, lines, attention, ...amounts]) =>
    ({text, own, lines, attention: attention || 0, adds: amounts.length ? lead(amounts) : 0}))]);
  const parts = pieces.flatMap(([, of]) => of);
  return {
    one, k, j, terms, sides, pieces, rival, name: names[k], names,
    start: lead(one.intercepts), end: lead(one.decisions),
    largest: Math.max(0.05, ...parts.map((part) => Math.abs(part.adds))),
    most: Math.max(0, ...parts.map((part) => part.attention)),
    ordered: names[k] === one.predicted || rival !== one.predicted ? sides : [...sides].reverse(),
  };
}

// The class that a class is compared with unless one chooses another, as in Python.
function rivalOf(one, k) {
  if (binary || one.classes.length < 2) return -1;
  const predicted = one.classes.indexOf(one.predicted), true_ = one.classes.indexOf(one.true);
  if (k !== predicted) return predicted;
  if (true_ >= 0 && true_ !== predicted) return true_;
  return one.decisions.map((decision, at) => [at === k ? -Infinity : decision, at])
    .sort((a, b) => b[0] - a[0])[0][1];
}

function firstShown(one) {
  const at = one.classes.indexOf(data.target === null ? one.predicted : data.target);
  return Math.max(at, 0);
}

const shadeOf = (view, adds) => {
  const share = Math.abs(adds) / view.largest;
  return share < 0.1 ? 0 : Math.min(5, 1 + Math.floor(share * 5 * 0.9999));
};
const outlineOf = (view, attention) => {
  const over = view.most ? 2 * attention / view.most - 1 : -1;
  return over >= 0 ? Math.min(2, 1 + Math.floor(2 * over)) : 0;
};

// The parts of a document

function classStrip(view, show) {
  const {one, names} = view;
  const shares = binary ? (one.classes[0] === data.classes[0] ? [0, 1] : [1, 0]).map((at) => names[at]) : names;
  if (names.length < 2) return "";
  const probability = (label) => {
    const at = one.classes.indexOf(label);
    return at >= 0 ? one.probabilities[at] : 1 - one.probabilities[0];
  };
  const items = shares.map((label) => element("li", {class: label === view.name ? "shown" : "soft"},
    element("button", {type: "button", "aria-pressed": String(label === view.name),
      title: `show what speaks for ${label}`, onclick: () => show(names.indexOf(label))},
      element("span", null, bdi(label), " ", element("span", null, percent(probability(label)))),
      element("span", {class: "meter"}, element("i", {style: `width:${(100 * probability(label)).toFixed(1)}%`})))));
  if (one.more) items.push(element("li", {class: "soft"}, `and ${one.more} more classes`));
  const long = Math.max(...shares.map((label) => label.length)) > 12;
  return element("ul", {class: "classes" + (long ? " long" : "")}, items);
}

function bar(view) {
  const sides = view.sides.filter((side) => side.total);
  if (!sides.length) return "";
  const zero = view.rival !== null;
  const highest = view.start + view.sides[0].total;
  const ends = [view.start, view.end, highest, ...(zero ? [0] : [])];
  const low = Math.min(...ends), width = Math.max(...ends) - low || 1;
  const at = (value) => 1 + 98 * (value - low) / width;
  const strips = sides.map((side) => {
    let here = side.sign > 0 ? view.start : highest;
    const stop = side.sign > 0 ? highest : view.end;
    const segment = (there, term) => {
      const [left, right] = [at(here), at(there)].sort((a, b) => a - b);
      here = there;
      return element("i", {
        class: term ? null : "rest", "data-term": term ? term.at : null,
        style: `left:${left.toFixed(2)}%;width:${(right - left).toFixed(2)}%`,
        title: term ? `${term.name}: ${signed(term.adds)}` : "all other tokens together",
      }, right - left > 2 ? bdi(term ? term.name : "others") : "");
    };
    const segments = side.all.slice(0, 6).map((term) => segment(here + term.adds, term));
    if (Math.abs(stop - here) > 1e-6) segments.push(segment(stop, null));
    return element("span", {class: "strip" + (side.sign < 0 ? " minus" : "")}, segments);
  });
  const tick = (kind, value) => element("span", {class: `tick ${kind}`, style: `left:${at(value).toFixed(2)}%`});
  const axis = zero ? element("span", {class: "axis"},
    at(0) > 8 ? element("span", {class: "left", style: `width:${at(0).toFixed(2)}%`}, element("i", null, "← ", bdi(view.rival))) : "",
    at(0) < 92 ? element("span", {class: "right", style: `left:${at(0).toFixed(2)}%`}, element("i", null, bdi(view.name), " →")) : "") : "";
  return element("div", {class: "bar", role: "img", "aria-label": "the decision as a sum"},
    zero ? tick("zero", 0) : "", strips, tick("start", view.start),
    tick("end" + (strips.length === 2 ? " second" : ""), view.end), axis);
}

function sum(view) {
  const what = view.j >= 0 && view.rival ? `lead over ${view.rival}` : "decision";
  return element("p", {class: "sum"},
    element("span", null, element("i", {class: "key end"}), element("b", null, signed(view.end)), ` ${what} =`),
    element("span", null, element("i", {class: "key start"}), element("b", null, signed(view.start)), " intercept"),
    view.sides.filter((side) => side.total).map((side) => element("span", null,
      element("b", null, signed(side.total)), " ",
      element("span", {class: `t ${side.sign > 0 ? "p3" : "n3"}`}, side.label))));
}

function shaded(view) {
  return view.pieces.map(([name, pieces]) => [
    name === null ? "" : element("h4", null, bdi(name)),
    element("div", {class: "text", dir: "auto", lang: ""}, pieces.map((piece) => {
      if (!piece.own.length && !piece.adds) return piece.text;
      const shade = shadeOf(view, piece.adds), outline = outlineOf(view, piece.attention);
      const terms = piece.own.map((at) => view.terms[at]).sort((a, b) => Math.abs(b.adds) - Math.abs(a.adds));
      const kind = (shade ? ` ${piece.adds > 0 ? "p" : "n"}${shade}` : "") + (outline ? ` a${outline}` : "");
      let made = element("span", {
        class: "t" + kind, "data-term": piece.own.join(" "),
        title: [`here ${signed(piece.adds)}, attention ${percent(piece.attention)}, of:`,
          ...terms.map((term) => `${term.name} ×${quantity(term.count)}: ${signed(term.adds)}`)].join("\n"),
      }, piece.text);
      for (const [lane, at] of piece.lines) {
        made = element("span", {class: `g l${lane}` + (view.terms[at].adds < 0 ? " minus" : "")}, made);
      }
      return made;
    })),
  ]);
}

function lists(view) {
  const all = view.sides.flatMap((side) => side.listed);
  const largest = Math.max(0, ...all.map((term) => Math.abs(term.adds)));
  const written = new Map(aligned(all.map((term) => term.adds)).map((number, at) => [all[at], number]));
  return element("div", {class: "lists"}, view.ordered.map((side) => {
    const rows = side.listed.map((term) => element("tr", {"data-term": term.at, tabindex: 0},
      element("th", {scope: "row"},
        element("span", {class: "size", style: `width:${(100 * Math.abs(term.adds) / largest).toFixed(1)}%`}), bdi(term.name)),
      element("td", null, written.get(term)), element("td", null, percent(term.attention)),
      element("td", null, quantity(term.count))));
    const heads = ["token", "adds", "attention", "count"].map((head) => element("th", {scope: "col"}, head));
    return element("table", {class: side.sign < 0 ? "minus" : null},
      element("caption", null, `${side.sign > 0 ? "+" : "−"} ${side.label}${rows.length ? "" : ": no token"}`),
      rows.length ? [element("thead", null, element("tr", null, heads)), element("tbody", null, rows)] : "");
  }));
}

function remarks(view) {
  const said = view.ordered.filter((side) => side.all.length > side.listed.length).map((side) => {
    const rest = side.all.length - side.listed.length;
    const adds = side.all.reduce((of, term) => of + term.adds, 0) - side.listed.reduce((of, term) => of + term.adds, 0);
    return `${rest} more ${side.label} (${signed(adds)})`;
  });
  if (view.one.others[0]) said.push(`${view.one.others[0]} others, left out by top`);
  if (view.one.cls) said.push(`<cls>, the classifier's own token, keeps ${percent(view.one.cls)} of the attention and adds 0`);
  return said.length ? element("p", {class: "soft small"}, said.join("; ") + ".") : "";
}

function against(view, show) {
  if (binary || view.names.length < 2) return "";
  const choice = element("select", {onchange: () => show(view.k, Number(choice.value))},
    element("option", {value: -1}, "all others"),
    view.names.map((label, at) => at === view.k ? "" : element("option", {value: at, selected: at === view.j}, label)));
  return element("label", {class: "control"}, bdi(view.name), " against ", choice);
}

// A document below its heading, for a class that may be chosen.
function fill(holder, one, k, j, extra) {
  const show = (next, rival) => fill(holder, one, next, rival === undefined ? rivalOf(one, next) : rival, extra);
  const view = seen(one, k, j);
  const tools = extra ? extra(view) : [];
  holder.replaceChildren(...[classStrip(view, show), against(view, show), bar(view), sum(view),
    ...shaded(view).flat(), lists(view), remarks(view),
    tools.length ? element("p", {class: "tools"}, tools) : ""].filter((part) => part !== ""));
}

const textOf = (one) => one.texts.map(([, pieces]) => pieces.map((piece) => piece[0]).join("")).join("\n");

// Saving

function save(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], {type}));
  element("a", {href: address, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

function asJson(view) {
  const {one} = view;
  return JSON.stringify({
    document: one.number, text: textOf(one),
    predicted: one.predicted, probability: one.probability, true: one.true, class: view.name, against: view.rival,
    decision: view.end, intercept: view.start,
    tokens: view.terms.map(({name, count, attention, adds}) => ({token: name, count, attention, contribution: adds})),
  }, null, 1);
}

function asSvg(view) {
  const width = 760, font = "14px system-ui, sans-serif", out = [];
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = font;
  const escape = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`)
    .replace(/[^\t\n -\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "");
  const write = (x, y, text, more = "") => out.push(`<text x="${x.toFixed(1)}" y="${y}" ${more}>${escape(text)}</text>`);
  const colour = (adds) => adds > 0 ? "0,104,178" : "222,110,0";
  let x = 20, y = 34;
  write(x, y, `predicted ${view.one.predicted} (${percent(view.one.probability)})` +
    (view.one.true === null ? "" : `, truly ${view.one.true}`), 'font-weight="600"');
  write(x, y += 22, `${signed(view.end)} = ${signed(view.start)} intercept` +
    view.sides.map((side) => `, ${signed(side.total)} ${side.label}`).join(""));
  y += 32;
  for (const [, pieces] of view.pieces) {
    for (const piece of pieces) {
      for (const part of piece.text.split(/(\s+)/)) {
        if (/\n/.test(part)) { x = 20; y += 24; continue; }
        const size = pen.measureText(part).width;
        if (x + size > width - 20 && part.trim()) { x = 20; y += 24; }
        const shade = part.trim() ? shadeOf(view, piece.adds) : 0;
        if (shade) out.push(`<rect x="${x.toFixed(1)}" y="${y - 14}" width="${size.toFixed(1)}" height="19" fill="rgba(${colour(piece.adds)},${[0, 0.1, 0.2, 0.31, 0.43, 0.55][shade]})"/>`);
        if (part.trim()) write(x, y, part);
        x += size;
      }
    }
    x = 20;
    y += 24;
  }
  y += 14;
  const listed = view.ordered.flatMap((side) => side.listed);
  const largest = Math.max(...listed.map((term) => Math.abs(term.adds)));
  for (const term of listed) {
    write(230, y, term.name, 'text-anchor="end"');
    const size = 400 * Math.abs(term.adds) / largest;
    out.push(`<rect x="240" y="${y - 12}" width="${size.toFixed(1)}" height="15" fill="rgb(${colour(term.adds)})"/>`);
    write(246 + size, y, signed(term.adds));
    y += 21;
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${y}" viewBox="0 0 ${width} ${y}" ` +
    `style="font:${font};fill:#181c22"><rect width="100%" height="100%" fill="#fff"/>${out.join("")}</svg>`;
}

// What if: a text of one's own, explained as it is written

function stretchAt(text, place) {
  let start = place, stop = place;
  while (start && /\S/.test(text[start - 1])) start--;
  while (stop < text.length && /\S/.test(text[stop])) stop++;
  return text.slice(start, stop).toLowerCase().replace(/^[^\p{L}\p{N}_]+|[^\p{L}\p{N}_]+$/gu, "") || text.slice(start, stop);
}

// What the model says of a text, in the form of the page's documents.
function explained(text) {
  const answer = model.explain(text);
  const labels = data.model.classes;
  const order = answer.probabilities.map((share, at) => [share, at]).sort((a, b) => b[0] - a[0]);
  const likely = order.slice(0, 6).filter(([share], place) => place < 2 || share >= 0.0005).map(([, at]) => at);
  const chosen = binary ? [1] : labels.length > 6 ? likely : likely.sort((a, b) => a - b);
  const of = (row) => binary ? row : chosen.map((at) => row[at]);
  const n = text.length, amounts = chosen.map(() => new Float64Array(n)), attention = new Float64Array(n);
  const own = Array.from({length: n}, () => new Set());
  const terms = [], number = new Map();
  const term = (name, token, share) => {
    if (!number.has(name)) {
      number.set(name, terms.length);
      terms.push([name, 0, 0, ...chosen.map(() => 0)]);
    }
    const at = number.get(name);
    [token.count, token.attention, ...of(token.contributions)].forEach((amount, i) => { terms[at][1 + i] += share * amount; });
    return at;
  };
  const edges = new Set([0, n]);
  for (const {token: at, share, spans} of answer.occurrences) {
    const token = answer.tokens[at];
    const spelled = token.column >= data.model.text.n_words;
    const name = token.name.replace(/^ +| +$/g, (spaces) => "␣".repeat(spaces.length));
    const into = term(spelled && spans ? `${stretchAt(text, spans[0][0])} (characters)` : name, token, share);
    for (const [start, stop] of spans || []) {
      const part = share / spans.length / (stop - start);
      if (!spelled) edges.add(start).add(stop);
      for (let i = start; i < stop; i++) {
        attention[i] += part * token.attention;
        of(token.contributions).forEach((amount, k) => { amounts[k][i] += part * amount; });
        own[i].add(into);
      }
    }
  }
  for (let i = 1; i < n; i++) if (!own[i].size !== !own[i - 1].size) edges.add(i);
  const places = [...edges].sort((a, b) => a - b);
  const total = (numbers, start, stop) => numbers.subarray(start, stop).reduce((a, b) => a + b, 0);
  const pieces = places.slice(1).map((stop, i) => {
    const start = places[i], inside = new Set();
    for (let at = start; at < stop; at++) own[at].forEach((one) => inside.add(one));
    return [text.slice(start, stop), [...inside], [], total(attention, start, stop), ...amounts.map((row) => total(row, start, stop))];
  });
  return {
    answer,
    one: {
      number: null, classes: chosen.map((at) => labels[at]), probabilities: chosen.map((at) => answer.probabilities[at]),
      decisions: of(answer.decision), intercepts: of(answer.intercept), more: binary ? 0 : labels.length - chosen.length,
      predicted: answer.predicted, probability: Math.max(...answer.probabilities), true: null, right: false,
      cls: answer.cls, others: [0, ...chosen.map(() => 0)], terms, texts: [[null, pieces]],
    },
  };
}

// The fewest tokens whose removal changes the prediction: the sign of a lead is a sum over tokens.
function counterfactual({tokens, intercept, cls, predicted}) {
  const labels = data.model.classes, k = labels.indexOf(predicted);
  let best = null;
  labels.forEach((label, j) => {
    if (j === k) return;
    const lead = (of) => binary ? (k ? of[0] : -of[0]) : of[k] - of[j];
    const parts = tokens.map((token) => [token.attention * (lead(token.values) + lead(intercept)), token.name])
      .sort((a, b) => b[0] - a[0]);
    let left = cls * lead(intercept) + parts.reduce((of, [part]) => of + part, 0), n = 0;
    const rounding = 1e-12 * parts.reduce((of, [part]) => of + Math.abs(part), Math.abs(cls * lead(intercept)));
    while (left >= -rounding && n < parts.length && parts[n][0] > 0) left -= parts[n++][0];
    // Without any token and without <cls>, the intercept is all there is.
    const gone = n === parts.length && !cls ? lead(intercept) < 0 : left < -rounding;
    if (gone && (!best || n < best.names.length)) best = {label, names: parts.slice(0, n).map(([, name]) => name)};
  });
  if (!best) return "No removal of tokens changes the prediction.";
  const shown = best.names.slice(0, 6).map((name) => `“${name}”`).join(", ");
  const more = best.names.length > 6 ? ` and ${best.names.length - 6} more` : "";
  const n = best.names.length;
  return `Without ${n === 1 ? "the token" : `these ${n} tokens`} it is ${best.label}; no fewer would do: ${shown}${more}.`;
}

function whatIf() {
  const box = element("textarea", {id: "clsattn-text", rows: 5, "aria-label": "a text of your own", spellcheck: "false"});
  const head = element("p", {class: "head", "aria-live": "polite"}), body = element("div"), change = element("p", {class: "soft"});
  let shownClass = null;
  const update = () => {
    const {one, answer} = explained(box.value);
    head.replaceChildren(element("span", {class: "prediction"}, "predicted ", element("b", null, bdi(one.predicted)),
      " with probability ", element("b", null, percent(one.probability))));
    head.dataset.decision = JSON.stringify(answer.decision);
    const k = Math.max(one.classes.indexOf(shownClass === null ? one.predicted : shownClass), 0);
    fill(body, one, k, rivalOf(one, k), (view) => { shownClass = binary ? null : view.name === one.predicted ? null : view.name; return []; });
    change.textContent = answer.tokens.length ? counterfactual(answer) : "No token that the model knows: the decision is the intercept.";
  };
  box.addEventListener("input", update);
  const {n_tokens: all, tokens} = data.model;
  const bytes = document.getElementById("clsattn-data").textContent.length;
  const size = bytes < 1e5 ? `${Math.ceil(bytes / 1e3)} KB` : `${(bytes / 1e6).toFixed(1)} MB`;
  const part = tokens.length < all ? `the ${tokens.length.toLocaleString("en")} strongest of ${all.toLocaleString("en")} tokens, so that numbers differ from the whole model's`
    : `all ${all.toLocaleString("en")} tokens of the model`;
  const section = element("details", {class: "whatif", open: true},
    element("summary", null, element("b", null, "What if?"), " Write or edit a text; nothing leaves this page."),
    box, head, change, body, element("p", {class: "soft small"}, `This page holds ${part} (${size} of data).`));
  return {section, edit: (text) => { box.value = text; section.open = true; update(); section.scrollIntoView(); box.focus(); }};
}

// The page

const sections = [...page.querySelectorAll(".doc")].map((section, at) => {
  const head = section.querySelector(".head");
  const number = head.querySelector(".no").textContent;
  const [label, probability] = [...head.querySelectorAll(".prediction b")].map((one) => one.textContent);
  return {
    section, at, head, number, label, one: data.documents[at] || null,
    probability: data.documents[at] ? data.documents[at].probability : parseFloat(probability.replace("<", "")) / 100,
    wrong: head.querySelector(".wrong") !== null, known: /[✓✗]/.test(head.textContent), text: (data.documents[at] ? textOf(data.documents[at]) : section.textContent).toLowerCase(),
    compared: false,
  };
});

const box = model && whatIf();

function documentTools(one) {
  return (view) => [
    box && one.texts.length === 1 ? element("button", {type: "button", onclick: () => box.edit(textOf(one))}, "edit") : "",
    element("button", {type: "button", onclick: () => save(`document-${one.number}.svg`, "image/svg+xml", asSvg(view))}, "save as SVG"),
    element("button", {type: "button", onclick: () => save(`document-${one.number}.json`, "application/json", asJson(view))}, "save as JSON"),
  ];
}

for (const {section, one, head} of sections) {
  if (!one) continue;
  const details = section.querySelector(":scope > details");
  const holder = element("div");
  const draw = () => {
    const k = firstShown(one);
    fill(holder, one, k, rivalOf(one, k), documentTools(one));
    for (const old of [...(details || section).children]) if (old.tagName !== "SUMMARY" && old !== head) old.remove();
    (details || section).append(holder);
  };
  if (details) details.addEventListener("toggle", draw, {once: true});
  else draw();
}

// A word and the rows of its tokens, linked while the mouse is over one of them, or after a tap.
let held = null;
function link(target) {
  page.querySelectorAll(".linked").forEach((one) => one.classList.remove("linked"));
  const start = target && target.closest("[data-term]");
  const within = start && start.closest(".doc, .whatif");
  if (!within) return;
  const wanted = new Set(start.dataset.term.split(" "));
  within.querySelectorAll("[data-term]").forEach((one) => {
    if (one.dataset.term.split(" ").some((term) => wanted.has(term))) one.classList.add("linked");
  });
}
page.addEventListener("mouseover", (event) => { if (!held) link(event.target); });
page.addEventListener("focusin", (event) => { if (!held) link(event.target); });
page.addEventListener("click", (event) => {
  const target = event.target.closest("[data-term]");
  held = target && target !== held ? target : null;
  link(held);
});

// Choosing, sorting and comparing documents

function toolbar() {
  const option = (value, text) => element("option", {value}, text);
  const labels = [...new Set(sections.map((one) => one.label))].sort();
  const text = element("input", {type: "search", placeholder: "text", "aria-label": "documents with this text", size: 14, oninput: refresh});
  const label = element("select", {"aria-label": "predicted class", onchange: refresh}, option("", "any class"), labels.map((one) => option(one, one)));
  const truth = element("select", {"aria-label": "right or wrong", onchange: refresh}, option("", "right and wrong"), option("wrong", "wrong"), option("right", "right"));
  const order = element("select", {"aria-label": "order", onchange: refresh}, option("", "in order"), option("unsure", "least sure first"), option("sure", "surest first"));
  const count = element("span", {class: "soft", "aria-live": "polite"});
  const compare = element("button", {type: "button", "aria-pressed": "false", onclick: () => {
    const on = compare.getAttribute("aria-pressed") === "false";
    compare.setAttribute("aria-pressed", String(on));
    page.classList.toggle("choosing", on);
    if (!on) sections.forEach((one) => { one.compared = one.tickbox.checked = false; });
    refresh();
  }}, "compare two");
  for (const one of sections) {
    one.tickbox = element("input", {type: "checkbox", "aria-label": `compare ${one.number}`, onclick: (event) => event.stopPropagation(), onchange: () => {
      one.compared = one.tickbox.checked;
      refresh();
    }});
    one.head.prepend(element("label", {class: "choose"}, one.tickbox));
  }
  const list = sections.length ? sections[0].section.parentNode : page;
  const end = element("span", {hidden: true});
  if (sections.length) sections[sections.length - 1].section.after(end);
  const pair = element("div", {class: "pair"});
  end.before(pair);
  function refresh() {
    const chosen = sections.filter((one) => one.compared);
    const two = chosen.length === 2;
    const sorted = [...sections];
    const sign = {sure: -1, unsure: 1}[order.value];
    if (sign) sorted.sort((a, b) => sign * (a.probability - b.probability));
    let shown = 0;
    for (const one of sorted) {
      const wanted = two ? one.compared : (!label.value || one.label === label.value) &&
        (!truth.value || (one.known && one.wrong === (truth.value === "wrong"))) &&
        (!text.value || one.text.includes(text.value.toLowerCase()));
      one.section.hidden = !wanted;
      shown += wanted;
      const details = one.section.querySelector(":scope > details");
      if (two && wanted && details) details.open = true;
      if (two && wanted) pair.append(one.section);
      else list.insertBefore(one.section, end);
    }
    const on = compare.getAttribute("aria-pressed") === "true";
    count.textContent = on && !two ? `tick two documents (${chosen.length} ticked)` : shown < sections.length ? `${shown} of ${sections.length} documents` : "";
  }
  const theme = element("button", {type: "button", onclick: () => {
    dark = !dark;
    for (const sheet of document.styleSheets) for (const rule of sheet.cssRules) {
      if (rule.media && (rule === themeRule || rule.media.mediaText.includes("prefers-color-scheme"))) {
        themeRule = rule;
        rule.media.mediaText = dark ? "screen" : "not all";
      }
    }
  }}, "light / dark");
  let dark = matchMedia("(prefers-color-scheme: dark)").matches, themeRule = null;
  const several = sections.length > 1;
  return element("div", {class: "toolbar", role: "group", "aria-label": "documents"},
    several ? [text, label, sections.some((one) => one.known) ? truth : "", order, compare] : "", theme, count,
    data.documents.length < sections.length ? element("span", {class: "soft"},
      `The first ${data.documents.length} documents can be seen for other classes and saved.`) : "");
}

const first = page.querySelector(".doc");
page.insertBefore(toolbar(), first);
if (box) {
  page.insertBefore(box.section, first);
  const start = data.documents.find((one) => one.texts.length === 1);
  box.edit(start ? textOf(start) : "");
  document.activeElement.blur();
  scrollTo(0, 0);
}
