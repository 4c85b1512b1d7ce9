// The calls of both APIs. Each is tagged with a name, so that thresholds speak
// of calls and not of URLs, and says which refusals are a part of the game: k6
// counts every other status as failed.

import http from 'k6/http';
import { sleep } from 'k6';
import exec from 'k6/execution';
import { admin, adminToken, base, room, sku } from './settings.js';

const entries = `${base}/v1/rooms/${room}/entries`;
const json = { 'Content-Type': 'application/json' };
const items = JSON.stringify({ items: [{ sku, quantity: 1 }] });

// Addresses of the network that is set aside for benchmarks (RFC 2544), one for
// each virtual user, and for each try of an intruder: whoever limits by address
// sees a crowd and not one client.
function address() {
  const intruder = exec.scenario.name === 'intruders';
  const n = intruder ? 65536 + (exec.scenario.iterationInTest & 65535) : exec.vu.idInTest & 65535;
  return `198.${18 + ((n >> 16) & 1)}.${(n >> 8) & 255}.${n & 255}`;
}

function params(name, headers, ...expected) {
  return {
    tags: { name },
    headers: Object.assign({ 'X-Forwarded-For': address() }, headers),
    responseCallback: http.expectedStatuses(...expected),
    timeout: '30s',
  };
}

const ticketed = (ticket) => (ticket ? { 'X-Queue-Ticket': ticket } : {});

export const enter = (ticket) => http.post(entries, null, params('enter', ticketed(ticket), 200, 201, 429));
export const poll = (ticket) => http.get(`${entries}/me`, params('poll', ticketed(ticket), 200, 429));
export const leave = (ticket) => http.del(`${entries}/me`, null, params('leave', ticketed(ticket), 204, 409));

// 409 order-in-progress and 429 order-limit ask to come again; 409 sold-out is for
// the checks to tell.
const ordering = (token) =>
  params('order', Object.assign({ 'X-Entry-Token': token }, json), 200, 201, 409, 429);

export const order = (token) => http.post(`${base}/v1/orders`, items, ordering(token));

// orderTwice sends the same order on two connections at once.
export function orderTwice(token) {
  const one = { method: 'POST', url: `${base}/v1/orders`, body: items, params: ordering(token) };
  return http.batch([one, one]);
}

// orderRefused is an order that must not pass.
export const orderRefused = (headers) =>
  http.post(`${base}/v1/orders`, items, params('refuse', Object.assign({}, headers, json), 401));

const operator = (type) =>
  Object.assign({ Authorization: `Bearer ${adminToken}` }, type ? { 'Content-Type': type, 'If-Match': '*' } : {});
const roomURL = `${admin}/admin/v1/rooms/${room}`;
const productURL = `${admin}/admin/v1/products/${sku}`;

export const getRoom = () => http.get(roomURL, params('admin', operator(), 200));
export const patchRoom = (change) =>
  http.patch(roomURL, JSON.stringify(change), params('admin', operator('application/merge-patch+json'), 200));
export const getSnapshot = () => http.get(`${roomURL}/snapshot`, params('admin', operator(), 200));
export const getProduct = () => http.get(productURL, params('admin', operator(), 200));
export const putProduct = (product) =>
  http.put(productURL, JSON.stringify(product), params('admin', operator('application/json'), 200));

// body is the answer, or an empty object where there is none to be read.
export function body(response) {
  try {
    return response.json() || {};
  } catch (_) {
    return {};
  }
}

// undecided is an answer after which one asks again: there was none, or it says
// so. Status 0 is k6's word for a connection that broke.
const undecided = (r) =>
  [0, 429, 502, 503, 504].includes(r.status) || (r.status === 409 && body(r).code === 'order-in-progress');

// insist repeats a call until its answer decides, as a client should; every call
// can be repeated. It returns all answers, the last of which counts. What was
// lost on the way is still counted as failed.
export function insist(call) {
  const answers = [call()];
  while (undecided(answers[answers.length - 1]) && answers.length < 10) {
    sleep(pause(answers[answers.length - 1]));
    answers.push(call());
  }
  return answers;
}

export const answered = (call) => insist(call).pop();

// pause is how long an answer asks to wait, in seconds.
function pause(response) {
  const after = Number(response.headers['Retry-After'] || 1);
  return Math.min(after, 10) * (1 + 0.2 * Math.random()); // so that not all come back at once
}
