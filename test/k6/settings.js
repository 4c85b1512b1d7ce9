// What a run is told by its environment, and what follows from it.

const text = (name, fallback) => __ENV[name] || fallback;

function number(name, fallback) {
  const value = Math.round(Number(text(name, fallback)));
  if (!(value >= 1)) throw new Error(`${name} must be a number of at least 1, not ${__ENV[name]}`);
  return value;
}

// 90, 90s and 1m30s are the same.
function seconds(name, fallback) {
  const parts = /^(?:(\d+)m)?(?:(\d+)s?)?$/.exec(text(name, fallback));
  const value = parts && 60 * Number(parts[1] || 0) + Number(parts[2] || 0);
  if (!(value >= 10)) throw new Error(`${name} must be at least 10s, as in 30s or 1m30s, not ${__ENV[name]}`);
  return value;
}

export const base = text('BASE_URL', 'http://127.0.0.1:8080').replace(/\/+$/, '');
export const admin = text('ADMIN_URL', 'http://127.0.0.1:8081').replace(/\/+$/, '');
export const adminToken = text('ADMIN_TOKEN', '');
export const room = text('ROOM', 'default');
export const sku = text('SKU', 'demo');

export const rate = number('RATE', 100); // people who enter, a second
export const duration = seconds('DURATION', '30s'); // how long they go on entering
export const batch = number('BATCH', rate / 2); // let through a second, until half of the duration
export const batchAfter = number('BATCH_AFTER', 2 * batch); // and from then on
export const intervalMs = 1000;
export const p95 = number('P95_MS', 500); // the slowest answer that 95 % may need

// The doors open: a sixth of the time at twice the rate, the rest below it, so
// that rate x duration people come in all.
export const doors = { rate: 2 * rate, seconds: Math.round(duration / 6) };
export const after = { rate: Math.max(1, Math.round(0.8 * rate)), seconds: duration - doors.seconds };

// forecast plays the line second by second: how many wait at its longest, and
// when the last is through.
function forecast() {
  let waiting = 0;
  let longest = 0;
  let second = 0;
  for (; second < duration || waiting > 0; second++) {
    if (second < duration) waiting += second < doors.seconds ? doors.rate : after.rate;
    waiting = Math.max(0, waiting - (second < duration / 2 ? batch : batchAfter));
    longest = Math.max(longest, waiting);
  }
  return { longest, end: second };
}

const { longest, end } = forecast();

// The second by which everybody is through, also on a machine that is busy.
export const endBy = end + 30;

// One virtual user is one person from entering to the order, so as many are
// needed as are inside at once: those who wait, and those who have a token but
// poll every few seconds, think, and order (8 s of the fastest rate).
export const people = longest + 8 * Math.max(batch, batchAfter) + 2 * rate;

// How people behave: shares of all.
export const reloading = 0.1; // enter a second time, as if the page was loaded again
export const ordering = 0.9; // of those with a token; the others give it back
export const repeating = 0.2; // of those who order, do so again once they know
export const twins = 0.2; // of those who order, send two requests at the same moment
export const following = 0.1; // of those who order, poll until they see their order
