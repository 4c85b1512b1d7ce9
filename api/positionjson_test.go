package api

import (
	"encoding/json"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/linekeeper/linekeeper/api/spec"
)

// A field that is added to the position must be added there too: every field is
// drawn, by reflection, and compared with what encoding/json writes.
func TestPositionsAreWrittenAsTheLibraryWritesThem(t *testing.T) {
	t.Parallel()
	instants := rapid.Custom(func(t *rapid.T) any {
		return time.Unix(rapid.Int64Range(0, 253402300799).Draw(t, "second"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanosecond")).UTC()
	})
	positions := rapid.MakeCustom[spec.Position](rapid.MakeConfig{Types: map[reflect.Type]*rapid.Generator[any]{reflect.TypeFor[time.Time](): instants}})
	rapid.Check(t, func(t *rapid.T) {
		p := positions.Draw(t, "position")
		want, err := json.Marshal(p)
		require.NoError(t, err)
		rec := httptest.NewRecorder()
		require.NoError(t, writePosition(rec, 201, &p))
		require.Equal(t, string(want), rec.Body.String())
		require.Equal(t, "application/json", rec.Header().Get("Content-Type"))
		require.Equal(t, 201, rec.Code)
	})
}
