// The operator: looks at the room four times a second, changes the batch size in
// mid-run, and holds what the room says of itself against what is promised.

import { check, fail, sleep } from 'k6';
import exec from 'k6/execution';
import { Counter, Trend } from 'k6/metrics';
import * as api from './api.js';
import { Admissions } from './admissions.js';
import { admin, adminToken, batch, batchAfter, duration, intervalMs, people, rate, room, sku } from './settings.js';

const lookEvery = 0.25; // seconds
const inForceWithin = 1000; // ms, promised

const granted = new Counter('grants_counted');
const fullest = new Trend('rate_used_percent');
const inForce = new Trend('change_in_force_after', true);
const waiting = new Trend('people_waiting');

const safety = { claim: 'safety' };

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

// look is one snapshot: all of it is of one moment, by the clock of Redis.
function look() {
  const response = api.getSnapshot();
  if (response.status !== 200) return null;
  const s = api.body(response);
  s.admitted = sum(s.lanes.map((lane) => lane.admitted));
  return s;
}

const states = ['waiting', 'away', 'processing', 'ready', 'claimed'];
const endings = ['consumed', 'expired', 'left', 'forgotten', 'evicted'];

// everybody counts those who ever entered, by the state in which they are.
const everybody = (s) => sum(states.map((n) => s.sizes[n])) + sum(endings.map((n) => s.counters[n] || 0));

// prepare gives the room its first batch size and the product enough stock, and
// returns what the end of the run is compared with.
export function prepare() {
  if (!adminToken) fail('ADMIN_TOKEN is needed; `make k6` finds it by itself');
  const response = api.getRoom();
  if (response.status !== 200) fail(`room ${room} at ${admin} answers ${response.status}: ${response.body || response.error}`);
  const before = api.body(response).settings;
  const patched = api.patchRoom({ batchSize: batch, intervalMs });
  if (patched.status !== 200) fail(`batchSize ${batch}: ${patched.body}`);
  const stock = stockUp();
  const start = awaitOpen(api.body(patched).version);
  return {
    before: { batchSize: before.batchSize, intervalMs: before.intervalMs },
    processingMs: 1000 * before.processingTimeoutSeconds,
    generation: start.generation,
    admitted: start.admitted,
    holding: start.sizes.ready + start.sizes.claimed, // may order although let through before
    stock,
  };
}

// stockUp makes sure that nobody finds the product sold out.
function stockUp() {
  const response = api.getProduct();
  if (response.status !== 200) fail(`product ${sku} at ${admin} answers ${response.status}: ${response.body}`);
  const { stock, priceCents, currency } = api.body(response);
  const needed = 2 * rate * duration;
  if (stock >= needed) return stock;
  const put = api.putProduct({ stock: needed, priceCents, currency });
  if (put.status !== 200) fail(`stock of ${sku}: ${put.body}`);
  return needed;
}

// awaitOpen waits until the settings of a version are in force, in a room that
// may still be being begun.
function awaitOpen(version) {
  for (let attempt = 0; attempt < 45; attempt++) {
    const s = look();
    if (s && s.roomState === 'OPEN' && s.version >= version) return s;
    sleep(1);
  }
  return fail(`room ${room} is not OPEN; see \`linekeeper doctor --room ${room}\``);
}

// operate watches until nobody else is there.
export function operate(start) {
  const began = Date.now();
  const watch = { start, admissions: new Admissions(intervalMs, start.processingMs), change: null, last: start.admitted };
  for (let elapsed = 0; elapsed <= duration || exec.instance.vusActive > 1; elapsed = (Date.now() - began) / 1000) {
    if (!watch.change && elapsed >= duration / 2) change(watch);
    observe(watch);
    sleep(lookEvery);
  }
  check(watch.change, { 'a change of the batch size came into force': (c) => c.seen }, safety);
}

function change(watch) {
  const response = api.patchRoom({ batchSize: batchAfter });
  check(response, { 'the batch size can be changed while people wait': (r) => r.status === 200 }, safety);
  watch.change = { version: api.body(response).version, at: Date.now(), seen: false };
}

function observe(watch) {
  const asked = Date.now();
  const s = look();
  if (!s) return;
  const changed = watch.change !== null && s.version >= watch.change.version;
  const late = watch.change !== null && !changed && asked - watch.change.at > inForceWithin;
  const used = watch.admissions.add(s, changed ? batchAfter : batch);
  check(s, {
    'admissions keep the rate': () => used <= 1,
    'a change is in force within a second': () => !late,
    'everybody who entered is in exactly one state': () => everybody(s) === (s.counters.entered || 0),
    'the room has lost nothing': () => s.generation === watch.start.generation,
  }, safety);
  if (changed && !watch.change.seen) {
    watch.change.seen = true;
    inForce.add(asked - watch.change.at);
  }
  fullest.add(100 * used);
  waiting.add(s.sizes.waiting);
  granted.add(s.admitted - watch.last);
  watch.last = s.admitted;
}

// conclude compares what was sold with what was let through, and puts the
// settings back.
export function conclude(start) {
  const s = look();
  const product = api.getProduct();
  const sold = start.stock - api.body(product).stock;
  const through = s ? s.admitted - start.admitted : 0;
  check(s, {
    'nothing was sold to who was not let through': () => product.status === 200 && sold <= through + start.holding,
  }, safety);
  api.patchRoom(start.before);
  console.log(`let through: ${through}; sold: ${sold}; still with a token: ${s ? s.sizes.ready + s.sizes.claimed : '?'}; ` +
    `virtual users provided: ${people}`);
}
