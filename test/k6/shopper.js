// One person's way through the line, and what must hold for it whatever the
// load. Each check is named by the claim that it makes.

import { check, sleep } from 'k6';
import exec from 'k6/execution';
import { Counter, Trend } from 'k6/metrics';
import * as api from './api.js';
import { endBy, following, ordering, reloading, repeating, twins } from './settings.js';

const tokens = new Counter('tokens_seen');
const orders = new Counter('orders_placed');
const replays = new Counter('orders_replayed');
const returned = new Counter('tokens_given_back');
const waited = new Trend('waited_for_token', true);

// What must hold whatever happens, and what people may expect while all parts run.
const safety = { claim: 'safety' };
const service = { claim: 'service' };

const chance = (share) => Math.random() < share;

// shopper goes the whole way once.
export function shopper() {
  const me = arrive();
  if (!me) return;
  if (chance(reloading)) arriveAgain(me);
  if (!wait(me)) return;
  sleep(2 * Math.random()); // reading the page
  if (chance(ordering)) buy(me);
  else giveBack(me);
}

function arrive() {
  const began = Date.now();
  const response = api.answered(() => api.enter());
  const p = api.body(response);
  const entered = check(response, {
    'who enters gets a place': () => response.status === 201 && p.score > 0,
    'who enters gets a ticket': () => !!p.queueTicket,
  }, service);
  if (!entered) return null;
  const me = { ticket: p.queueTicket, score: p.score, began };
  isCoherent(me, p);
  return me;
}

function arriveAgain(me) {
  const response = api.answered(() => api.enter(me.ticket));
  if (response.status !== 200) return;
  const p = api.body(response);
  check(p, { 'entering again changes no place': () => p.score === null || p.score === me.score }, safety);
}

// isCoherent holds for every position that anybody is shown.
function isCoherent(me, p) {
  const ranked = p.rank !== null && p.currentTotalWaitingCount !== null;
  check(p, {
    'rank is never above total - 1': () => !ranked || (p.rank >= 0 && p.rank <= p.currentTotalWaitingCount - 1),
    'a place never changes': () => p.score === null || p.score === me.score,
    'a token is shown when it is one\'s turn, and only then': () =>
      (p.status === 'READY' || p.status === 'CLAIMED') === (p.entryToken !== null),
  }, safety);
}

// ask polls once, and keeps the ticket if it was renewed.
function ask(me) {
  const response = api.answered(() => api.poll(me.ticket));
  if (response.status !== 200) return null;
  const p = api.body(response);
  if (p.queueTicket) me.ticket = p.queueTicket;
  isCoherent(me, p);
  return p;
}

// wait polls at the pace that the server asks for, until there is a token.
function wait(me) {
  const deadline = me.began + 1000 * endBy;
  let next = 0;
  let status = 'WAITING';
  while (status === 'WAITING' && Date.now() < deadline) {
    sleep(next);
    const p = ask(me);
    if (!p) break;
    next = p.nextPollAfterMs / 1000;
    status = p.status;
    me.token = p.entryToken;
  }
  const served = check(status, { 'who waits is let through': () => status === 'READY' && !!me.token }, service);
  if (served) {
    tokens.add(1);
    waited.add(Date.now() - me.began);
  }
  return served;
}

// buy places one order. Some send it twice at once, some again when they know.
function buy(me) {
  const twice = chance(twins);
  const answers = twice ? api.orderTwice(me.token) : [];
  answers.push(...api.insist(() => api.order(me.token)));
  if (chance(repeating)) answers.push(...api.insist(() => api.order(me.token)));

  const placed = answers.filter((r) => r.status === 201);
  const replayed = answers.filter((r) => r.status === 200);
  const ids = new Set(placed.concat(replayed).map((r) => api.body(r).id));
  orders.add(ids.size);
  replays.add(replayed.length);
  check(answers, { 'who has a token can order': () => ids.size > 0 }, service);
  check(answers, {
    'no two orders with one token': () => placed.length <= 1 && ids.size <= 1,
    'a repeat says that it is one': () => replayed.every((r) => r.headers['Idempotency-Replayed'] === 'true'),
  }, safety);
  if (ids.size === 1 && chance(following)) follow(me, [...ids][0]);
}

// follow polls until the line knows of the order, as a page that was loaded
// again would.
function follow(me, id) {
  let p = null;
  for (let attempt = 0; attempt < 10 && !(p && p.status === 'CONSUMED'); attempt++) {
    if (p) sleep(p.nextPollAfterMs / 1000);
    p = ask(me);
  }
  check(p, { 'the line learns of the order': () => p && p.status === 'CONSUMED' }, service);
  if (p && p.status === 'CONSUMED') check(p, { 'the line ends with the order that was placed': () => p.orderId === id }, safety);
}

// giveBack leaves. The token is worth nothing from then on.
function giveBack(me) {
  const left = api.answered(() => api.leave(me.ticket));
  if (!check(left, { 'who has a token can leave': () => left.status === 204 }, service)) return;
  returned.add(1);
  intrude('no order with a token that was given back', { 'X-Entry-Token': me.token }, 'entry-token-invalid');
}

// intrude orders with what must not do. No answer at all shows nothing, and is
// counted as a failed request.
function intrude(claim, headers, code) {
  const response = api.answered(() => api.orderRefused(headers));
  if (response.status === 0 || response.status >= 500) return;
  check(response, { [claim]: () => response.status === 401 && api.body(response).code === code }, safety);
}

// A token whose header says that it needs no signature.
const invented = 'eyJhbGciOiJub25lIn0.eyJqdGkiOiIxIn0.';

// intruder tries to order past the line: without a token, with an invented
// one, with a queue ticket in its place.
export function intruder() {
  const attempts = [
    () => intrude('no order without a token', {}, 'entry-token-missing'),
    () => intrude('no order with an invented token', { 'X-Entry-Token': invented }, 'entry-token-invalid'),
    intrudeWithTicket,
  ];
  attempts[exec.scenario.iterationInTest % attempts.length]();
}

function intrudeWithTicket() {
  const { queueTicket } = api.body(api.answered(() => api.enter()));
  if (!queueTicket) return;
  intrude('no order with a queue ticket', { 'X-Entry-Token': queueTicket }, 'entry-token-invalid');
  api.answered(() => api.leave(queueTicket));
}
