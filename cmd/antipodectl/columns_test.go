package main

import (
	"errors"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"antipode/client/command"
)

// A line that is wider than the terminal goes on at a word, below its text, and the row of a table between two columns. Commands
// to copy, and words that are too long, stay whole.
func TestLinesAreWrappedAtWords(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"all is well", "all is well"},
		{strings.Repeat("a", 20) + " " + strings.Repeat("b", 19), strings.Repeat("a", 20) + " " + strings.Repeat("b", 19)},
		{strings.Repeat("a", 20) + " " + strings.Repeat("b", 20), strings.Repeat("a", 20) + "\n  " + strings.Repeat("b", 20)},
		{
			"blocked    south does not answer: the link is cut; nothing was changed",
			"blocked    south does not answer: the\n           link is cut; nothing was\n           changed",
		},
		{"see http://127.0.0.1:10080/" + strings.Repeat("x", 40) + " for it", "see\n  http://127.0.0.1:10080/" + strings.Repeat("x", 40) + "\n  for it"},
		{"ACCOUNT   PRIMARY         SERVICE  STATUS  LAG", "ACCOUNT   PRIMARY         SERVICE\n  STATUS  LAG"},
		{
			"pictures/1@southcentralus/r4/l17 (stopped: the secondary has lost changes)  table    2026-11-21T15:04:02.500Z  2.500s",
			"pictures/1@southcentralus/r4/l17\n  (stopped: the secondary has lost\n  changes)  table\n  2026-11-21T15:04:02.500Z  2.500s",
		},
		{
			"          next: start the witness; if north is off: antipodectl failover unplanned pictures",
			"          next: start the witness; if\n                north is off:\n                antipodectl failover\n                unplanned pictures",
		},
		{"          antipodectl failover start pictures --yes", "          antipodectl failover start pictures --yes"},
		{"größe      " + strings.Repeat("ä ", 14) + "ä", "größe      " + strings.Repeat("ä ", 14) + "ä"},
	} {
		require.Equal(t, c.want, wrapped(c.line, 40))
		require.Equal(t, c.line, wrapped(c.line, 0), "no terminal")
		require.Equal(t, c.line, wrapped(c.line, 200))
	}
}

// Output and errors are wrapped on a terminal, and a colour is that of the whole line; documents and what is read by programs
// are not.
func TestTerminalsGetWrappedLines(t *testing.T) {
	tl := &tool{columns: func(any) int { return 40 }, colour: true}
	require.Equal(t, "\x1b[33mWARNING  one rack has two of the three\n         nodes of the location\x1b[0m\nshort\n",
		string(tl.paint("WARNING  one rack has two of the three nodes of the location\nshort\n")))
	var errOut strings.Builder
	tl.errOut = &errOut
	tl.complain(errors.New("a failover of location north is blocked, nothing was changed"))
	require.Equal(t, "antipodectl: a failover of location\n  north is blocked, nothing was changed\n", errOut.String())
	errOut.Reset()
	tl.output = "json"
	tl.complain(errors.New("a failover of location north is blocked, nothing was changed"))
	require.Equal(t, 1, strings.Count(errOut.String(), "\n"))

	for _, line := range strings.Split(string(tl.paint("CRITICAL  the witness is dead\n          next: "+strings.Repeat("start it ", 20))), "\n") {
		require.LessOrEqual(t, len(strings.TrimRight(line, " ")), 60, line) // With the colour.
	}
	srv := httptest.NewServer(port(t).Config.Handler)
	defer srv.Close()
	code, out, _ := ctl(srv.URL, "failover", "check", "--location", "northcentralus")
	require.Equal(t, command.Done, code)
	require.Contains(t, out, "location   northcentralus: 1 account with a copy, 0 without (not moved)\n", "no terminal")
}

// The width is the terminal's. A device that is no terminal, and what is no file, has none.
func TestColumnsAreTheTerminals(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, terminal.Close()) }()
	require.NoError(t, unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 57}))
	require.Equal(t, 57, columnsOf(terminal))
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, null.Close()) }()
	require.Zero(t, columnsOf(null))
	require.Zero(t, columnsOf(&strings.Builder{}))
}
