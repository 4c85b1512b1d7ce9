package outbox

import "testing"

// BenchmarkRelay is the way of an event from due to done, in full batches.
func BenchmarkRelay(b *testing.B) {
	f := newFixture(b)
	r := f.relay(Options{})
	for range b.N / MaxBatch {
		f.append("r", members("m", MaxBatch)...)
	}
	f.append("r", members("m", b.N%MaxBatch)...)
	b.ResetTimer()
	for f.round(r) {
	}
	b.StopTimer()
	if n := f.status(Done); n != b.N {
		b.Fatalf("%d of %d delivered", n, b.N)
	}
}
