package queue

import (
	"math"
	"time"
)

// Sample is a lane at one moment. The counts are totals of a generation.
type Sample struct {
	At       time.Time // of Redis
	Moves    bool      // the room lets people through
	Waiting  int64
	Admitted int64 // grants issued
	Passed   int64 // who stood in line and went without a grant: silent, left, refused
}

// Pace is how fast a lane has been moving, as measured while somebody waited and
// the room let people through. The zero Pace knows nothing.
//
// It is a moving average over some twenty seconds, or four intervals where
// those are longer: what is older counts for a third after each such time. A
// rate is a number of members by a time, both of which fade, so that the first
// sample counts fully and a short one for little.
type Pace struct {
	base     Sample
	interval time.Duration
	seconds  float64 // all of these fade
	admitted float64
	passed   float64
	squares  float64 // of the admissions a second, times seconds
	samples  float64
}

// Wait is how long somebody will wait: likely, and in nine of ten cases from
// Least to Most, if the room goes on as it has.
type Wait struct{ Likely, Least, Most time.Duration }

const (
	paceMemory    = 20 * time.Second
	paceIntervals = 4
	shortSample   = time.Second

	// Of those ahead at most so many are taken for gone, however many went lately:
	// those who left in a crowd do not come in one again.
	mostPassed = 0.9

	nineOfTen   = 1.65 // standard deviations
	leastSpread = 0.1
	fewSpread   = 0.2 // more, divided by the samples: one alone may be of a full bucket
	mostSpread  = 0.6
)

// Next takes a sample in. One that follows too soon changes nothing: members come
// in batches, and half an interval says nothing about them.
func (p Pace) Next(s Sample, interval time.Duration) Pace {
	memory := max(paceMemory, paceIntervals*interval)
	elapsed := s.At.Sub(p.base.At)
	switch usable := p.base.Moves && s.Moves && p.base.Waiting > 0 && s.Waiting > 0; {
	case p.base.Moves == s.Moves && elapsed >= 0 && elapsed < max(shortSample, interval):
		return p
	case interval != p.interval:
		p = Pace{interval: interval}
	case usable && elapsed > 0 && elapsed <= memory:
		seconds, n := elapsed.Seconds(), float64(s.Admitted-p.base.Admitted)
		keep := math.Exp(-seconds / memory.Seconds())
		p.seconds = keep*p.seconds + seconds
		p.admitted = keep*p.admitted + n
		p.passed = max(0, keep*p.passed+float64(s.Passed-p.base.Passed))
		p.squares = keep*p.squares + n*n/seconds
		p.samples = keep*p.samples + 1
	}
	p.base = s
	return p
}

// PerSecond is how many are let through a second; 0 where that is not known.
func (p Pace) PerSecond() float64 {
	if p.seconds == 0 {
		return 0
	}
	return p.admitted / p.seconds
}

// Passed is the part of those in line who go without being let through.
func (p Pace) Passed() float64 {
	if p.admitted+p.passed <= 0 {
		return 0
	}
	return min(p.passed/(p.admitted+p.passed), mostPassed)
}

// Wait is how long somebody with so many ahead will wait: the time in which those
// of them who are not passed over, and themselves, are let through. False where
// nothing has been measured.
//
// The range is that of the mean of as many samples as were measured, and as the
// wait will have: long waits are known better than short ones.
func (p Pace) Wait(ahead int64) (Wait, bool) {
	rate := p.PerSecond()
	if rate <= 0 {
		return Wait{}, false
	}
	likely := (float64(ahead)*(1-p.Passed()) + 1) / rate
	sample := p.seconds / p.samples
	deviation := math.Sqrt(max(0, p.squares/p.seconds-rate*rate)) / rate
	spread := nineOfTen * deviation * math.Sqrt(1/p.samples+sample/max(likely, sample))
	spread = min(max(spread, leastSpread+fewSpread/p.samples), mostSpread)
	batch := p.interval.Seconds() // whose moment nobody knows
	return Wait{
		Likely: waited(likely),
		Least:  waited(max(0, likely/(1+spread)-batch)),
		Most:   waited(likely/(1-spread) + batch),
	}, true
}

// waited is a time from seconds, as far as a time goes.
func waited(seconds float64) time.Duration {
	return time.Duration(min(seconds*float64(time.Second), math.MaxInt64/2))
}
