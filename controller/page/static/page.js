"use strict";
// Okabe and Ito's colours, which people with any colour vision tell apart; the letter in each box says the same.
const COLOURS = ["#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7", "#999999"];
const MOST_ROWS = 1000;
const at = { status: null, points: [], topology: "", isMeant: false, problem: "", readS: 0, sort: "executor", down: false };
const $ = (id) => document.getElementById(id);

// All that is shown goes through here: text is text, whatever is in it.
function made(kind, tag, attributes, parts) {
  const node = kind ? document.createElementNS(kind, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "on") for (const [event, then] of Object.entries(value)) node.addEventListener(event, then);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...parts.flat(Infinity).filter((part) => part !== null && part !== undefined));
  return node;
}
const el = (tag, attributes, ...parts) => made(null, tag, attributes, parts);
const svg = (tag, attributes, ...parts) => made("http://www.w3.org/2000/svg", tag, attributes, parts);
// What has the focus keeps it, by its name: a keyboard would begin at the top again with each status.
function put(id, ...parts) {
  const held = $(id).contains(document.activeElement) ? document.activeElement.dataset.name : null;
  $(id).replaceChildren(...parts.flat(Infinity).filter((part) => part !== null));
  if (held) [...$(id).querySelectorAll("[data-name]")].find((one) => one.dataset.name === held)?.focus({ preventScroll: true });
}
// Draws a part again only where what it shows has changed: a thousand executors take their time.
const drawn = new Map();
function fresh(id, shown, draw) {
  const key = JSON.stringify(shown);
  if (drawn.get(id) === key) return;
  draw();
  drawn.set(id, key);
}
const button = (text, name, click, attributes = {}) =>
  el("button", { type: "button", "data-name": name, "aria-label": name === text ? null : name, ...attributes, on: { click } }, text);

const known = (value) => value !== null && value !== undefined;
const number = (value, digits = 0) => known(value) ? value.toLocaleString("en", { maximumFractionDigits: digits }) : "–";
const percent = (value) => known(value) ? `${number(100 * value, 1)} %` : "–";
const time = (seconds) => `${new Date(1000 * seconds).toISOString().slice(11, 19)} UTC`;
// As the commands show it.
const date = (seconds) => `${new Date(1000 * seconds).toISOString().slice(0, 19).replace("T", " ")}Z`;
function bytes(value) {
  if (!known(value)) return "–";
  for (const [unit, size] of [["GB/s", 1e9], ["MB/s", 1e6], ["kB/s", 1e3]]) if (value >= size) return `${number(value / size, 1)} ${unit}`;
  return `${number(value)} B/s`;
}
const host = (id) => at.status.hosts[id] || id;
function place(slot) {
  if (!slot) return "–";
  const cut = slot.lastIndexOf(":");
  return `${host(slot.slice(0, cut))}${slot.slice(cut)}`;
}
// Writes hosts for the ids of supervisors in a text, as the commands do: before a port, and what Storm alone makes.
const named = (text) => (text || "").replace(/[\w.:-]*[\w.-](?=:\d)/g, (id) => {
  const cut = id.lastIndexOf(":") + 1;
  return at.status.hosts[id] || `${id.slice(0, cut)}${host(id.slice(cut))}`;
}).replace(/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}-[\w.:-]*\w/g, host);
const node = (slot) => slot ? slot.slice(0, slot.lastIndexOf(":")) : "";

function table(columns, rows) {
  const heads = columns.map(([name, isNumber, key]) => el("th", {
    class: isNumber ? "n" : null, scope: "col",
    "aria-sort": key && key === at.sort ? (at.down ? "descending" : "ascending") : null,
  }, key ? button(`${name}${key === at.sort ? (at.down ? " ▾" : " ▴") : ""}`, `Sort by ${name}`, () => sortBy(key)) : name));
  const lines = rows.map((row) => el("tr", {}, row.map((cell, i) => el("td", { class: columns[i][1] ? "n" : null }, cell))));
  return el("table", {}, el("thead", {}, el("tr", {}, heads)), el("tbody", {}, lines));
}

function sortBy(key) {
  at.down = key === at.sort && !at.down;
  at.sort = key;
  showExecutors(chosen());
}

// The same topology as before, by its name, as the commands take it. Where it is gone, none: what a visitor means is never another one.
function chosen() {
  const all = at.status ? at.status.topologies : [], same = all.find((one) => one.name === at.topology);
  return same || (at.isMeant ? undefined : all[0]);
}

function show() {
  showHead();
  const one = chosen();
  if (one) at.topology = one.name;
  for (const verb of ["pause", "resume"]) document.querySelector(`[data-verb=${verb}]`).disabled = !one;
  for (const section of document.querySelectorAll("main > section:not(:last-child)")) section.hidden = !one;
  if (!one) return;
  const { hosts, agents, ended_moves } = at.status, { topology, executors, links, moves, workers, ...rest } = one;
  fresh("decision", [topology, rest, hosts], () => showDecision(one));
  fresh("timeline", [topology, at.points.length, at.points.at(-1)], () => showTimeline(one));
  fresh("hosts", [topology, executors, moves, workers, hosts, agents.map((agent) => agent.meters)], () => showHosts(one, letters(one)));
  fresh("traffic", [topology, links, workers.map((worker) => worker.slot), hosts], () => showTraffic(one));
  fresh("moves", [topology, moves, ended_moves, hosts], () => showMoves(one));
  fresh("executors", [topology, executors, hosts], () => showExecutors(one));
}

function showHead() {
  const doc = at.status;
  const age = at.readS ? `read ${time(at.readS)}` : "not read yet";
  const cluster = doc && doc.cluster ? `cluster ${doc.cluster} · ` : "";
  document.title = doc && doc.cluster ? `nstorm · ${doc.cluster}` : "nstorm";
  put("cluster", doc ? `${cluster}leader ${doc.controllers.length ? doc.controllers[0].name : "none"} · mode ${doc.mode || "–"} · epoch ${doc.epoch ?? "–"} · ${doc.agents.length} agents · ${age}` : age);
  const alerts = [];
  if (at.problem) alerts.push(`${at.problem}. What is shown is of ${at.readS ? time(at.readS) : "nothing"}.`);
  if (doc) {
    const one = chosen();
    fresh("topologies", [doc.topologies.map((topology) => [topology.topology, topology.name]), one && one.topology], () => put("topologies",
      doc.topologies.map((topology) => button(topology.name, topology.name, () => { at.topology = topology.name; at.isMeant = true; show(); },
        { "aria-pressed": String(topology === one) }))));
    if (!one && at.isMeant) alerts.push(`${at.topology} is not there. Choose a topology.`);
    if (doc.off) alerts.push(`Everything is switched off: ${doc.off}`);
    if (!doc.controllers.length) alerts.push("No controller leads.");
    if (doc.old) alerts.push(`The figures are old: ${doc.old}`);
    if (doc.controls.freeze) alerts.push(`Frozen: ${doc.controls.freeze.reason}`);
    for (const [name, pause] of Object.entries(doc.controls.pauses || {})) alerts.push(`${name || "Everything"} is paused: ${pause.reason}`);
    if (doc.journal_problem) alerts.push(`The journal is not written: ${doc.journal_problem}`);
    for (const [id, age] of Object.entries(doc.silent_s)) alerts.push(`The agent of ${host(id)} has ${known(age) ? `been silent for ${number(age)} s` : "never reported"}.`);
    for (const agent of doc.off ? [] : doc.agents) if (agent.off) alerts.push(`The hooks on ${host(agent.node)} are off: ${agent.off}`);
    for (const [id, why] of Object.entries(doc.unpublished || {})) alerts.push(`Nimbus cannot publish ${id}, so nothing of it is seen: ${why}`);
    for (const drain of doc.drained) alerts.push(`${drain.host} is drained: ${drain.left} of ${drain.of} executors are left.`);
    if (one && one.undoes) alerts.push(`Storm itself would undo moves: ${one.undoes}`);
    if (one && one.nimbus_error) alerts.push(`Nimbus follows no plan: ${one.nimbus_error}`);
    for (const worker of one ? one.workers : []) if (worker.error || worker.fault) alerts.push(`${place(worker.slot)}: ${worker.error || worker.fault}`);
  }
  fresh("alerts", [alerts, doc && doc.hosts], () => put("alerts", alerts.map((text) => el("li", {}, doc ? named(text) : text))));
}

function showDecision(one) {
  const found = one.decision, parts = [];
  if (!found) parts.push(el("p", { class: "dim" }, "The leading controller has not decided about this topology yet."));
  else {
    parts.push(el("p", {}, el("span", { class: "outcome" }, found.outcome), ` ${named(found.reason)}`));
    for (const warning of found.warnings) parts.push(el("p", { class: "bad" }, named(warning)));
    if (found.proposal) parts.push(el("p", {}, `Proposal ${found.proposal} waits. `,
      ["approve", "reject"].map((verb) => [button(verb, `${verb} ${found.proposal}`, () => act(verb, { proposal: found.proposal })), " "])));
  }
  const facts = [["mode", `${one.mode || "–"} (by ${one.mode_by})`], ["between nodes", `${percent(one.inter_node_frac)} of the tuples, ${bytes(one.inter_node_bytes_per_s)}`]];
  const room = (left) => `${number(left.factor, 2)} times the input, then ${left.binds} of ${place2(left.where)}`, then = one.headroom_after;
  if (one.headroom && known(one.headroom.factor)) facts.push(["head-room", room(one.headroom)]);
  if (then && known(then.factor)) facts.push(["head-room after the moves", room(then)]);
  if (one.way && one.way.moves) facts.push(["all moves of the plan", `${one.way.moves}: ${percent(one.way.inter_node_frac[0])} → ${percent(one.way.inter_node_frac[1])} between nodes`]);
  if (one.effect) facts.push(["the last run of moves", named([one.effect.verdict, one.effect.end, one.effect.sentence].filter(Boolean).join(" · "))]);
  for (const guard of one.guards || []) facts.push([`guard ${guard.name}`, guard.problem ? `cannot be read: ${guard.problem}` : `${number(guard.value, 2)}, may be ${number(guard.limit, 2)} (${guard.state})`]);
  parts.push(table([["", false], ["", false]], facts));
  parts.push(el("p", {}, button("Why, and why not", "Why, and why not", () => why("", one))));
  put("decision", parts);
}
const place2 = (where) => where.includes(":") ? place(where) : host(where);

const CURVES = [
  ["acked_tps", "acked tuples/s", (v) => number(v)],
  ["latency_p99_ms", "latency p99, ms", (v) => number(v, 1)],
  ["inter_node_frac", "between nodes", percent],
  ["most_load_frac", "fullest worker", percent],
  ["failed_tps", "failed tuples/s", (v) => number(v, 1)],
];

function showTimeline(one) {
  const rows = at.points.filter((point) => point.topologies[one.topology]).map((point) => [point.time_s, point.topologies[one.topology]]);
  if (rows.length < 2) return put("timeline", el("p", { class: "dim" }, "It is drawn from the second point on, one each 5 s."));
  put("timeline", el("div", { class: "charts" }, CURVES.map(([key, name, text]) => chart(rows, key, name, text))),
    el("p", { class: "dim" }, "Vertical lines: moves are under way."));
}

function chart(rows, key, name, text) {
  const width = 300, height = 90, low = 16, first = rows[0][0], span = rows[rows.length - 1][0] - first || 1;
  const values = rows.map(([s, row]) => [s, row[key]]).filter(([, value]) => known(value));
  const most = Math.max(...values.map(([, value]) => value), 1e-9);
  const x = (s) => (width * (s - first)) / span, y = (value) => height - 4 - ((height - low - 4) * value) / most;
  const last = values.length ? text(values[values.length - 1][1]) : "not known";
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${name}: now ${last}, at most ${text(most)}` },
    svg("text", { x: 0, y: 11 }, `${name}: ${last}`),
    svg("text", { x: width, y: 11, "text-anchor": "end" }, values.length ? `max ${text(most)}` : ""),
    rows.filter(([, row]) => row.moves).map(([s]) => svg("line", { class: "tick", x1: x(s), x2: x(s), y1: low, y2: height - 4, opacity: 0.35 })),
    svg("line", { class: "axis", x1: 0, x2: width, y1: height - 4, y2: height - 4 }),
    svg("polyline", { class: "curve", points: values.map(([s, value]) => `${x(s).toFixed(1)},${y(value).toFixed(1)}`).join(" ") }));
}

function letters(one) {
  const names = [...new Set(one.executors.map((e) => e.component))].sort();
  const own = new Map(names.map((name, i) => [name, [COLOURS[i % COLOURS.length], String.fromCharCode(65 + (i % 26))]]));
  put("legend", names.map((name) => el("li", {}, box(own.get(name), 0), ` ${name}`)));
  return own;
}

function box([colour, letter], x, title = "", moving = false, y = 0) {
  const parts = [svg("rect", { x: x + 1, y: y + 1, width: 16, height: 16, fill: colour, class: moving ? "moving" : null }),
    svg("text", { x: x + 9, y: y + 13, "text-anchor": "middle", class: "letter" }, letter)];
  if (title) return svg("g", {}, svg("title", {}, title), parts);
  return svg("svg", { width: 18, height: 18, "aria-hidden": "true", class: "key" }, parts);
}

function showHosts(one, letter) {
  const moving = new Set(one.moves.map((move) => move.executor)), by = new Map();
  for (const worker of one.workers) by.set(node(worker.slot), [...(by.get(node(worker.slot)) || []), worker]);
  const agents = new Map(at.status.agents.map((agent) => [agent.node, agent]));
  const cards = [...by].sort(([a], [b]) => host(a).localeCompare(host(b))).map(([id, workers]) => {
    const meters = (agents.get(id) || {}).meters || {};
    const cpu = known(meters.machine_cpu_cores) ? `machine ${number(meters.machine_cpu_cores, 1)} of ${number(meters.machine_cores, 1)} cores` : "";
    const link = known(meters.net_sent_bytes_per_s) ? `link ${bytes(meters.net_sent_bytes_per_s)} out, ${bytes(meters.net_received_bytes_per_s)} in` : "";
    return el("div", { class: "card" }, el("h3", {}, host(id)), el("p", { class: "dim" }, [cpu, link].filter(Boolean).join(" · ")),
      workers.map((worker) => workerBox(one, worker, letter, moving)));
  });
  put("hosts", el("div", { class: "cards" }, cards));
}

function workerBox(one, worker, letter, moving) {
  const here = one.executors.filter((e) => e.slot === worker.slot), across = 13;
  const state = worker.off ? "off" : worker.starting ? "starting" : worker.hooks ? "" : "no hooks";
  const spaces = Object.entries(worker.spaces || {}).map(([name, share]) => ` · ${name} ${percent(share)}`).join("");
  const boxes = here.map((e, i) => box(letter.get(e.component), 18 * (i % across),
    `${e.component} ${e.executor}: ${number(e.cpu_cores, 2)} cores, queue ${number(e.queue)}${e.pinned ? `, stays: ${named(e.pinned)}` : `, ${e.way}`}`, moving.has(e.executor), 12 + 18 * Math.floor(i / across)));
  const rows = Math.ceil(here.length / across), load = Math.min(worker.load_frac || 0, 1);
  const said = `CPU ${percent(worker.load_frac)}${spaces}${state ? ` · ${state}` : ""}`;
  return el("div", {}, el("p", {}, el("strong", {}, worker.slot.slice(node(worker.slot).length)), ` ${said} `,
    button("why", `Why ${place(worker.slot)}`, () => why(worker.slot, one))),
    svg("svg", { viewBox: `0 0 ${18 * across} ${14 + 18 * rows}`, width: 18 * across, role: "img", "aria-label": `${place(worker.slot)}: ${here.length} executors, ${said}` },
      svg("rect", { class: "of", x: 0, y: 0, width: 18 * across, height: 8 }), svg("rect", { class: "bar", x: 0, y: 0, width: 18 * across * load, height: 8 }), boxes));
}

function showTraffic(one) {
  const inBytes = one.links.length > 0 && one.links.every((link) => known(link.bytes_per_s));
  const size = (link) => inBytes ? link.bytes_per_s : link.tps, text = inBytes ? bytes : (v) => `${number(v)}/s`;
  const ids = [...new Set([...one.workers.map((w) => node(w.slot)), ...one.links.flatMap((l) => [l.from, l.to])])].sort((a, b) => host(a).localeCompare(host(b)));
  if (!one.links.length) return put("traffic", el("p", { class: "dim" }, "Nothing crosses between nodes, as far as it is known."));
  const linked = ids.filter((id) => one.links.some((l) => l.from === id || l.to === id)), most = Math.max(...one.links.map(size));
  const row = new Map(one.links.map((link) => [`${link.from} ${link.to}`, link]));
  const cell = (a, b) => row.has(`${a} ${b}`) ? text(size(row.get(`${a} ${b}`))) : a === b ? "" : "·";
  // A number stands for a host on the map and above a column, where a name would have no room.
  const out = linked.map((a, i) => [`${i + 1} ${host(a)}`, ...linked.map((b) => cell(a, b))]);
  put("traffic", el("p", { class: "dim" }, inBytes ? "Bytes of serialised tuples, the heaviest links." : "Tuples, the heaviest links: the size of some is not known yet."),
    el("div", { class: "links" }, map(linked, one.links, size, most, text), table([["from \\ to", false], ...linked.map((id, i) => [String(i + 1), true])], out)));
}

function map(ids, links, size, most, text) {
  const middle = 150, radius = 110, seat = new Map(ids.map((id, i) => {
    const turn = (2 * Math.PI * i) / ids.length - Math.PI / 2;
    return [id, [middle + radius * Math.cos(turn), middle + radius * Math.sin(turn)]];
  }));
  const curves = links.map((link) => {
    const [ax, ay] = seat.get(link.from), [bx, by] = seat.get(link.to);
    // Each direction bends to its own side.
    const cx = (ax + bx) / 2 + (by - ay) / 6, cy = (ay + by) / 2 - (bx - ax) / 6;
    return svg("path", { d: `M${ax},${ay} Q${cx},${cy} ${bx},${by}`, class: "curve", "stroke-width": 1 + (7 * size(link)) / most, opacity: 0.75 },
      svg("title", {}, `${host(link.from)} → ${host(link.to)}: ${text(size(link))}`));
  });
  const names = ids.map((id, i) => svg("g", {}, svg("title", {}, host(id)), svg("circle", { cx: seat.get(id)[0], cy: seat.get(id)[1], r: 10, class: "seat" }),
    svg("text", { x: seat.get(id)[0], y: seat.get(id)[1] + 4, "text-anchor": "middle" }, i + 1)));
  return svg("svg", { viewBox: "0 0 300 300", width: 300, role: "img", "aria-label": `a map of ${links.length} links; the table has the same` }, curves, names);
}

// As the metric counts it.
function pause(move) {
  const of = move.phase_s || {};
  if (!known(move.stopped_after_s) || !(known(of.QUIET) || known(of.CARRY))) return "–";
  const seconds = known(of.CARRY) ? of.CARRY + (of.RECALL || 0) : move.stopped_after_s - (of.PREPARE || 0);
  return `${number(seconds, 2)} s`;
}

function showMoves(one) {
  const now = one.moves.map((m) => [m.executor, place(m.from), place(m.to), `${m.phase}${m.void ? `, void: ${m.void}` : ""}`, m.way, "", ""]);
  const ended = at.status.ended_moves.filter((m) => m.topology === one.topology).reverse().slice(0, 50)
    .map((m) => [m.executor, place(m.source), place(m.target), `${m.outcome}, ${date(m.ended_s)}`, m.asked_by, pause(m), named([m.reason, m.effect].filter(Boolean).join(" · "))]);
  if (!now.length && !ended.length) return put("moves", el("p", { class: "dim" }, "None yet."));
  put("moves", table([["executor", false], ["from", false], ["to", false], ["phase or end", false], ["way, or who asked", false], ["pause", true], ["why", false]], [...now, ...ended]));
}

function showExecutors(one) {
  const words = $("find").value.toLowerCase().split(/\s+/).filter(Boolean), key = at.sort;
  const rows = one.executors.map((e) => ({ ...e, where: place(e.slot), how: e.pinned ? "stays" : e.way, said: named(e.pinned || e.why) }))
    .filter((e) => words.every((word) => `${e.executor} ${e.component} ${e.where} ${e.how} ${e.said}`.toLowerCase().includes(word)));
  const order = (a, b) => !known(a) ? 1 : !known(b) ? -1 : typeof a === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  rows.sort((a, b) => (at.down ? -1 : 1) * order(a[key], b[key]));
  $("found").textContent = `${rows.length} of ${one.executors.length}`;
  put("executors", table([["executor", false, "executor"], ["component", false, "component"], ["worker", false, "where"], ["cores", true, "cpu_cores"], ["queue", true, "queue"], ["in, tuples/s", true, "in_tps"], ["out, tuples/s", true, "out_tps"], ["way", false, "how"], ["why", false, "said"], ["", false]],
    rows.slice(0, MOST_ROWS).map((e) => [e.executor, e.component, e.where, number(e.cpu_cores, 3), number(e.queue), number(e.in_tps, 1), number(e.out_tps, 1), e.how, e.said,
      button("why", `Why ${e.executor}`, () => why(e.executor, one))])));
}

async function asked(path, options) {
  const answer = await fetch(path, options), found = await answer.json().catch(() => ({}));
  return answer.ok ? found : { printed: `Refused: ${found.detail || answer.statusText}` };
}

async function why(what, one) {
  $("why-what").textContent = what ? place2(what) : one.name;
  $("why-text").textContent = "The leading controller is asked …";
  $("why").showModal();
  $("why-text").textContent = (await asked(`/api/explain?${new URLSearchParams({ what, topology: one.name })}`)).printed;
}

async function act(verb, wish) {
  if (verb === "off" && !confirm("Switch off all hooks of this cluster?")) return;
  $("said").textContent = `${verb} …`;
  const headers = { Authorization: `Bearer ${$("token").value}`, "Content-Type": "application/json" };
  $("said").textContent = (await asked(`/api/${verb}`, { method: "POST", headers, body: JSON.stringify(wish) })).printed;
}

$("find").addEventListener("input", () => { const one = chosen(); if (one) showExecutors(one); });
$("act").addEventListener("focusin", () => { at.isMeant ||= Boolean(chosen()); });
$("act").addEventListener("submit", (event) => event.preventDefault());
$("act").addEventListener("click", (event) => {
  const verb = event.target.dataset.verb, one = chosen(), reason = $("reason").value;
  if (!verb) return;
  const of = one && { topology: one.name };
  act(verb, { pause: { ...of, ...(reason && { reason }) }, resume: { ...of }, off: reason ? { reason } : {}, on: {} }[verb]);
});

const MOST_POINTS = 720; // an hour, as the server keeps
let reading = false;
async function read(news) {
  at.problem = news.problem;
  at.readS = news.read_s;
  if (reading) return;
  reading = true;
  try {
    const since = at.points.at(-1)?.time_s ?? 0;
    const [status, points] = await Promise.all([fetch("/api/status"), fetch(`/api/timeline?since=${since}`)]);
    if (status.ok) at.status = await status.json();
    if (points.ok) {
      const more = await points.json(), goesOn = !more.length || more[0].time_s > since;
      at.points = goesOn ? at.points.concat(more).slice(-MOST_POINTS) : more;
    }
  } finally {
    reading = false;
  }
  show();
}

const AGAIN_S = 10;
function watch() {
  const events = new EventSource("/api/events");
  events.onmessage = (event) => read(JSON.parse(event.data)).catch(() => lost("This page's server does not answer"));
  events.onerror = () => {
    if (events.readyState !== EventSource.CLOSED) return lost("This page's server does not answer");
    // A browser asks again by itself, but not after a refusal.
    lost(`This page's server refuses, as it does while 32 visitors watch. It is asked again each ${AGAIN_S} s`);
    setTimeout(watch, 1000 * AGAIN_S);
  };
}
function lost(problem) {
  at.problem = problem;
  showHead();
}
watch();
