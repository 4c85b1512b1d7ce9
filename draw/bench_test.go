package draw

import (
	"bytes"
	"io"
	"testing"
)

// What a draw costs at enter.
func BenchmarkKeyOfAMember(b *testing.B) {
	d := of(1)
	for b.Loop() {
		_ = d.Key(d.Entrant("member-1"), Weighted, 7)
	}
}

const many = 100_000

func BenchmarkListOf100000(b *testing.B) {
	d := of(1)
	placed := entered(d, Uniform, twoLanes, many)
	b.ReportAllocs()
	for b.Loop() {
		l, err := d.List(Uniform, twoLanes, placed)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := l.WriteTo(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerify100000(b *testing.B) {
	text := document(b, listed(b, of(1), Uniform, twoLanes, many))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		r, err := Verify(bytes.NewReader(text), Expect{})
		if err != nil || !r.Valid {
			b.Fatal(err, r.Checks)
		}
	}
}
