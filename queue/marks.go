package queue

import "math"

// MostMarks is how many marks of a lane the public is told at most.
const MostMarks = 64

// exactRanks is below which a mark that is off by one place is as good as one that is
// off by a twentieth.
const exactRanks = 20

// Mark says that the member at Rank has Score. Between two marks, a client that
// knows its own score places itself by interpolation.
type Mark struct{ Rank, Score int64 }

// ChooseMarks picks MostMarks of many marks, rising in rank and score, so that who
// interpolates between those that are left is as little wrong as can be, as a part of
// the rank. Where people came evenly two are enough for long; where a burst came, or
// many have left, it needs one on either side. The first and the last always stay.
func ChooseMarks(all []Mark) []Mark {
	if len(all) <= MostMarks {
		return all
	}
	chosen := make([]gap, 1, MostMarks-1)
	chosen[0] = gapOf(all, 0, len(all)-1)
	for len(chosen) < MostMarks-1 {
		i := widest(chosen)
		g := chosen[i]
		if g.wrong == 0 {
			break // straight lines all of them
		}
		chosen[i] = gapOf(all, g.from, g.at)
		chosen = append(chosen, gapOf(all, g.at, g.to))
	}
	stays := make([]bool, len(all))
	for _, g := range chosen {
		stays[g.from], stays[g.to] = true, true
	}
	out := make([]Mark, 0, len(chosen)+1)
	for i, m := range all {
		if stays[i] {
			out = append(out, m)
		}
	}
	return out
}

// gap lies between two chosen marks; at is the one of those between that interpolation
// has most wrong.
type gap struct {
	from, to, at int
	wrong        float64
}

func gapOf(all []Mark, from, to int) gap {
	g := gap{from: from, to: to}
	for i := from + 1; i < to; i++ {
		off := math.Abs(between(all[from], all[to], all[i].Score)-float64(all[i].Rank)) / float64(max(all[i].Rank, exactRanks))
		if off > g.wrong {
			g.at, g.wrong = i, off
		}
	}
	return g
}

func widest(gaps []gap) int {
	at := 0
	for i, g := range gaps {
		if g.wrong > gaps[at].wrong {
			at = i
		}
	}
	return at
}

// between is the rank of a score by a straight line between two marks.
func between(a, b Mark, score int64) float64 {
	if a.Score == b.Score {
		return float64(a.Rank)
	}
	return float64(a.Rank) + float64(b.Rank-a.Rank)*float64(score-a.Score)/float64(b.Score-a.Score)
}
