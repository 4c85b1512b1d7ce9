// A sale begins. People enter at a rate that does not slow down when answers
// do, poll as they are told, order with their token, some of them twice; an
// operator changes the batch size in mid-run; intruders try to pass the line.
//
//   k6 run -e ADMIN_TOKEN=... test/k6/sale.js       or: make k6
//
// Environment: BASE_URL, ADMIN_URL, ADMIN_TOKEN, ROOM, SKU, RATE (people a
// second), DURATION, BATCH and BATCH_AFTER (let through a second, before and
// after the change), P95_MS. It is for a stack that may be played with: it sets
// the room's batchSize and intervalMs (and puts them back), raises the stock if
// need be, and leaves its orders behind.
//
// A failed check of claim:safety is a broken promise, on any machine. The other
// thresholds say how well people are served: crossed ones mean that something
// on the way is too small for the rate. dropped_iterations above 0 means that
// the load itself was less than asked for.

import { after, doors, duration, endBy, p95, people } from './settings.js';
import { conclude, operate, prepare } from './operator.js';

export { intruder, shopper } from './shopper.js';

export const options = {
  scenarios: {
    crowd: {
      executor: 'ramping-arrival-rate',
      exec: 'shopper',
      startRate: doors.rate,
      timeUnit: '1s',
      preAllocatedVUs: people,
      stages: [
        { target: doors.rate, duration: `${doors.seconds}s` },
        { target: after.rate, duration: '0s' },
        { target: after.rate, duration: `${after.seconds}s` },
      ],
      gracefulStop: `${endBy}s`,
    },
    intruders: {
      executor: 'constant-arrival-rate',
      exec: 'intruder',
      rate: 3,
      timeUnit: '1s',
      duration: `${duration}s`,
      preAllocatedVUs: 50,
    },
    operator: {
      executor: 'per-vu-iterations',
      exec: 'operator',
      vus: 1,
      iterations: 1,
      maxDuration: `${duration + endBy + 30}s`,
    },
  },
  thresholds: {
    'checks{claim:safety}': ['rate==1'],
    'checks{claim:service}': ['rate>0.999'],
    dropped_iterations: ['count==0'],
    'http_req_failed{name:enter}': ['rate<0.001'],
    'http_req_failed{name:poll}': ['rate<0.001'],
    'http_req_failed{name:order}': ['rate<0.001'],
    'http_req_failed{name:leave}': ['rate<0.001'],
    'http_req_failed{name:refuse}': ['rate<0.001'],
    'http_req_duration{name:enter}': [`p(95)<${p95}`],
    'http_req_duration{name:poll}': [`p(95)<${p95}`],
    'http_req_duration{name:order}': [`p(95)<${p95}`],
  },
  summaryTrendStats: ['med', 'p(95)', 'p(99)', 'max'],
};

export const setup = prepare;
export const operator = operate;
export const teardown = conclude;
