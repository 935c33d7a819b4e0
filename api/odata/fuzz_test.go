package odata

import (
	"bytes"
	"math"
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

// Any Accept, $format and Content-Type give a level or 415, and the type of an answer
// asks for the very level it is of.
func FuzzNegotiate(f *testing.F) {
	f.Add("2019-02-02", "application/json; odata=minimalmetadata", "")
	f.Add("2013-08-15", "application/atom+xml,*/*;q=0.1", "json")
	f.Add("", "application/json;odata=verbose", "application/json;odata=nometadata;odata=fullmetadata")
	f.Fuzz(func(t *testing.T, version, accept, format string) {
		level, err := Negotiate(version, accept, format)
		if err != nil {
			requireStatus(t, err, http.StatusUnsupportedMediaType)
		} else {
			again, err := Negotiate(version, level.ContentType(), "")
			require.NoError(t, err)
			require.Equal(t, level, again)
			require.NoError(t, CheckContentType(version, level.ContentType()))
		}
		if err := CheckContentType(version, accept); err != nil {
			requireStatus(t, err, http.StatusUnsupportedMediaType)
		}
	})
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
			require.LessOrEqual(t, len(s.names), selectMax)
			for i, name := range s.names {
				require.Equal(t, i, s.index(name))
				require.Equal(t, i, s.indexBytes([]byte(name)))
			}
			require.True(t, s.all || len(s.names) > 0)
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

// What is read as a value of a type prints to a text that is read as the same value.
func FuzzEDM(f *testing.F) {
	for _, s := range []string{
		"2020-01-01T03:02:00.1200000+02:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.99999999Z", "2020-02-30",
		"C9DA6455-213D-42C9-9A79-3E9149A57833", "1.5", "-0", "1e-400", "NaN", "-INF", "9223372036854775807", "00ff", "",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if ticks, ok := parseDateTime(text); ok && ticks >= 0 {
			again, ok := parseDateTime(appendDateTime(nil, ticks, ":"))
			if year := text[:4]; string(year) != "9999" { // An offset may lead into a fifth digit.
				require.True(t, ok)
				require.Equal(t, ticks, again)
			}
		}
		if g, ok := parseGUID(text); ok {
			out := appendGUID(nil, g)
			require.True(t, bytes.EqualFold(text, out))
		}
		if v, ok := parseDouble(text); ok && notFinite(v) == "" {
			again, ok := parseDouble(appendDouble(nil, v))
			require.True(t, ok)
			require.Equal(t, math.Float64bits(v), math.Float64bits(again))
		}
		for _, bits := range []int{32, 64} {
			if v, ok := parseInteger(text, bits); ok {
				again, ok := parseInteger(strconv.AppendInt(nil, v, 10), bits)
				require.True(t, ok)
				require.Equal(t, v, again)
			}
		}
		if b, ok := parseHex(string(text)); ok {
			require.Len(t, b, len(text)/2)
		}
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
