package odata

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/services/storageerr"
)

// requireStatus requires an error of the protocol with this status.
func requireStatus(t *testing.T, err error, status int) {
	t.Helper()
	e, known := storageerr.Of(err)
	require.True(t, known, "%v", err)
	require.Equal(t, status, e.Status, "%v", err)
}

// Any $select names each property once and finds it, or is InvalidInput; any $top is a
// number in its range.
func FuzzOptions(f *testing.F) {
	f.Add("a, b,a,*", "10")
	f.Add("a,b,c,d,e,f,g,h,i,j,a,j", "1001")
	f.Add(strings.Repeat("a,", 252), "-1")
	f.Fuzz(func(t *testing.T, names, top string) {
		if s, err := ParseSelect(names); err != nil {
			requireStatus(t, err, http.StatusBadRequest)
		} else {
			require.LessOrEqual(t, len(s.Names), SelectMax)
			for i, name := range s.Names {
				require.Equal(t, i, s.Index(name))
				require.Equal(t, i, s.IndexBytes([]byte(name)))
			}
			require.True(t, s.All || len(s.Names) > 0)
		}
		n, err := ParseTop(top)
		if err != nil {
			requireStatus(t, err, http.StatusBadRequest)
			return
		}
		want, err := strconv.Atoi(top)
		require.NoError(t, err)
		require.Equal(t, want, n)
		require.LessOrEqual(t, n, TopMax)
	})
}

// Any tokens say where to go on, or are InvalidInput; tokens of what they say say the
// same.
func FuzzParseContinuation(f *testing.F) {
	f.Add("1!4!MQ--", "")
	f.Add("1!0!", "1!4!MQ--")
	f.Add("", "1!4!MQ--")
	f.Fuzz(func(t *testing.T, pk, rk string) {
		c, err := ParseContinuation(pk, rk)
		if err != nil {
			requireStatus(t, err, http.StatusBadRequest)
			return
		}
		var tokens [2]string
		if c.HasPK {
			tokens[0] = EncodeToken(c.PK)
		}
		if c.HasRK {
			tokens[1] = EncodeToken(c.RK)
		}
		again, err := ParseContinuation(tokens[0], tokens[1])
		require.NoError(t, err)
		require.Equal(t, c, again)
	})
}
