// Whether a room lets people through no faster than it may: grants in any window
// of w ms are at most batch x w / interval + batch, with the largest batch in
// force in it.

const clockMs = 2; // times are read to the millisecond, at both ends of a window

export class Admissions {
  // An admission that was begun under one batch size may end under the next, at
  // most processingMs later.
  constructor(intervalMs, processingMs) {
    this.intervalMs = intervalMs;
    this.processingMs = processingMs;
    this.samples = [];
  }

  // add takes a snapshot and the batch size in force in it, and returns the
  // fullest of all windows that end there: grants by what was allowed. Above 1
  // the promise is broken.
  add(snapshot, batch) {
    const now = { at: Date.parse(snapshot.redisTime), admitted: snapshot.admitted, batch };
    let fullest = 0;
    let most = batch; // in force in the window, or shortly before
    for (let i = this.samples.length - 1; i >= 0; i--) {
      const from = this.samples[i];
      most = Math.max(most, from.most);
      const allowed = most * ((now.at - from.at + clockMs) / this.intervalMs) + most;
      fullest = Math.max(fullest, (now.admitted - from.admitted) / allowed);
    }
    now.most = Math.max(batch, ...this.samples.filter((s) => s.at > now.at - this.processingMs).map((s) => s.batch));
    this.samples.push(now);
    return fullest;
  }
}
