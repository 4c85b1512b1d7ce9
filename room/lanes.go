package room

import (
	"fmt"
	"strings"
	"time"
)

// lanesTogether has the rules about lanes and how they share.
func (s Settings) lanesTogether() Problems {
	var wrong Problems
	for i, lane := range s.Lanes {
		field := fmt.Sprintf("lanes[%d].boostSeconds", i)
		switch {
		case lane.BoostSeconds > 0 && s.Priority != "boost":
			wrong = append(wrong, Problem{field, fmt.Sprintf(`must be 0 unless priority is "boost", got %d`, lane.BoostSeconds)})
		case lane.BoostSeconds > 0 && i == 0:
			wrong = append(wrong, Problem{field, fmt.Sprintf("must be 0: the first lane is the ordinary one, got %d", lane.BoostSeconds)})
		}
	}
	return wrong
}

// Continues tells what keeps next from following s in a room that lives: lanes
// are stored by index, so those that a room has keep their index and name. More
// may come behind them, and what they are worth may change.
func (s Settings) Continues(next Settings) Problems {
	for i, lane := range s.Lanes {
		if i >= len(next.Lanes) || next.Lanes[i].Name != lane.Name {
			return problem("must begin with the lanes that the room has, in their order (%s), got %s; more may follow them, and a room made anew can have others",
				laneNames(s.Lanes), laneNames(next.Lanes)).under("lanes")
		}
	}
	return nil
}

func laneNames(lanes []Lane) string {
	names := make([]string, len(lanes))
	for i, lane := range lanes {
		names[i] = lane.Name
	}
	return strings.Join(names, ", ")
}

// zone is the time zone of that name; nil, which is UTC, where this program does
// not know it.
func zone(name string) *time.Location {
	if name == "" || name == "UTC" || name == "Local" { // the machine's own is nobody's setting
		return nil
	}
	z, err := time.LoadLocation(name)
	if err != nil {
		return nil
	}
	return z
}

func readZone(v any, _ string) (string, Problems) {
	name, ok := v.(string)
	if !ok {
		return "", notZone(v)
	}
	return name, checkZone(name)
}

func checkZone(name string) Problems {
	if name != "UTC" && zone(name) == nil {
		return notZone(name)
	}
	return nil
}

func notZone(v any) Problems {
	return problem("must be the IANA name of a time zone such as Europe/Berlin or UTC, got %s", got(v))
}
