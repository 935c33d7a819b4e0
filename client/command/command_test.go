package command

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docs/admin.md has the table of exit codes, as it is.
func TestCodesAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/admin.md")
	require.NoError(t, err)
	for i, c := range Codes() {
		require.EqualValues(t, i, c)
		line := fmt.Sprintf("| %d | `%s` | %s |\n", c, c, c.Means())
		require.True(t, strings.Contains(string(doc), line), line)
	}
}

// What a command returns has one code: its own, that of work, or that of the parser of command lines.
func TestCodeOf(t *testing.T) {
	boom := errors.New("boom")
	require.Equal(t, Done, CodeOf(Tried(nil)))
	require.Equal(t, Done, CodeOf(Wrong(nil)))
	require.Equal(t, Failed, CodeOf(Tried(boom)))
	require.Equal(t, Usage, CodeOf(boom))
	require.Equal(t, Usage, CodeOf(Tried(Wrong(boom))))
	require.Equal(t, Partial, CodeOf(fmt.Errorf("outer: %w", &Error{Partial, boom})))
	require.ErrorIs(t, Tried(boom), boom)
	require.Equal(t, "boom", Tried(boom).Error())
}

// A size is read as it is printed, and as bytes; no other thing is taken for one.
func TestSizes(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "1000": 1000, "7B": 7, "64MiB": 64 << 20, "64 MiB": 64 << 20, "1.5 GiB": 3 << 29, "1KiB": 1024, "15EiB": 15 << 60,
		"18446744073709551615": math.MaxUint64,
	} {
		got, err := ParseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "MiB", "-1", "-1MiB", "1.5", "1.5B", "64MB", "64mib", "16EiB", "nanMiB", "infGiB", "18446744073709551616"} {
		_, err := ParseSize(text)
		require.Error(t, err, text)
	}
	for s, want := range map[Size]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 64 << 20: "64.0 MiB", math.MaxUint64: "16.0 EiB"} {
		require.Equal(t, want, s.String())
	}
	var bytes uint64
	f := Flag{&bytes}
	require.Empty(t, f.String())
	require.NoError(t, f.Set("2KiB"))
	require.EqualValues(t, 2048, bytes)
	require.Equal(t, "2.0 KiB", f.String())
	require.Error(t, f.Set("much"))
}
